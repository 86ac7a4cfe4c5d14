// How requests of each class, of each tenant, and of later turns of sessions fared in the measured part of a run.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "engine/base/percentiles.h"
#include "engine/workload/load.h"

namespace engine {

// What one measured request adds.
struct GroupedRequest {
  RequestClass service_class = RequestClass::normal;
  std::int32_t tenant = 0;
  std::int32_t history = 0,
               cached = 0;  // prompt tokens of its session before it, and found in the cache
  bool answered = true, good = false;
  double ttft = 0, tpot = 0;
  bool has_tpot = false;
};

class GroupSums {
 public:
  struct ClassSums {
    double requests = 0, good = 0;  // those that were given up are among the former
    Samples ttft, tpot;
  };
  struct TenantSums {
    double requests = 0, answered = 0, good = 0;
    double ttft_seconds = 0, tokens = 0;
  };

  // `tenants`: that the load, or the trace that it replays, has.
  void reset(const Load& load, std::int64_t tenants);
  bool any() const { return classes_ || tenants_.size() > 1 || turns_; }
  void add(const GroupedRequest& request);
  // An answer came in the measured part, whenever it was asked for.
  void served(std::int32_t tenant, double tokens) {
    if (tenants_.size() > 1) of_tenant(tenant).tokens += tokens;
  }

  ClassSums& of(RequestClass service_class) { return by_class_[std::size_t(service_class)]; }
  const std::vector<TenantSums>& tenants() const { return tenants_; }
  Samples& later_turns() { return later_turns_; }
  double history() const { return history_; }
  double history_found() const { return history_found_; }

 private:
  TenantSums& of_tenant(std::int32_t tenant) { return tenants_[std::size_t(tenant)]; }

  bool classes_ = false, turns_ = false;
  std::array<ClassSums, kRequestClasses> by_class_;
  std::vector<TenantSums> tenants_;
  Samples later_turns_;  // times to first token
  double history_ = 0, history_found_ = 0;
};

}  // namespace engine

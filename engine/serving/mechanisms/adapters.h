// Requests that wait for an adapter of the model, where the devices of a replica do not hold all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/serving/mechanisms/fleet.h"
#include "engine/serving/replica/adapter_cache.h"

namespace engine {

class Adapters {
 public:
  // True where some pool holds fewer adapters than are asked for. Where all fit, no request waits for one.
  bool start(Fleet& fleet);

  // Makes a sequence wait for its adapter, where that is not on the devices.
  void await(std::size_t replica, std::int32_t slot, double now);
  // One that waits, or has its adapter, will not come.
  void withdraw(std::size_t replica, std::int32_t slot);
  // One more answer, and one less, needs an adapter that is there.
  void need(std::size_t replica, std::int64_t adapter) {
    caches_[replica].need(adapter, fleet_->now);
  }
  void release(std::size_t replica, std::int64_t adapter) { caches_[replica].release(adapter); }
  // Requests have left: waiting ones may get a place for their adapter now.
  void find_room(std::size_t replica);
  void lose_all(std::size_t replica) { caches_[replica].lose_all(); }

 private:
  Fleet* fleet_ = nullptr;
  std::vector<AdapterCache> caches_;  // by replica
};

}  // namespace engine

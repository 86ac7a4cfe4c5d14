// Which replica a request goes to: pure functions of what a router can see.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "engine/memory/prefix_holders.h"
#include "engine/serving/fleet/least_of.h"
#include "engine/serving/settings/router_table.h"
#include "engine/workload/load_classes.h"
#include "engine/workload/request.h"

namespace engine {

class Replica;

// The weight of a replica that takes no requests.
constexpr std::int64_t kTakesNone = std::numeric_limits<std::int64_t>::max();

struct RouterView {
  std::span<Replica> replicas;           // of the pool,
  std::span<const std::int32_t> takers;  // and those that take requests; there is one
  const LeastOf<std::int64_t>& weights;  // of the replicas, as the router's line in the table says
  const PrefixHolders&
      holders;  // of prefixes, by replica, where the router's line says it reads caches
  const Request& request;
  const LoadClasses& classes;
  double now = 0;
  std::int64_t nth = 0;  // requests routed before
  std::uint64_t seed = 0;
};

}  // namespace engine

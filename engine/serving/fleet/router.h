// Which replica a request goes to: pure functions of what a router can see.
#pragma once

#include <array>
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

// Seconds of a replica that requests of each class take, of all requests together up to a factor; 0: none comes.
using ClassWork = std::array<double, kRequestClasses>;
// Replicas that each class has to itself; none: there are fewer replicas than classes.
using ClassReplicas = std::array<std::int64_t, kRequestClasses>;
// One for each class that comes, and every other one for the class whose replicas have most to do, the more urgent of equals. So the
// busiest class has as little to do on a replica as it can have.
ClassReplicas replicas_of_classes(const ClassWork& work, std::int64_t count);

struct RouterView {
  std::span<Replica> replicas;           // of the pool,
  std::span<const std::int32_t> takers;  // and those that take requests; there is one
  const LeastOf<std::int64_t>& weights;  // of the replicas, as the router's line in the table says
  const PrefixHolders&
      holders;  // of prefixes, by replica, where the router's line says it reads caches
  const Request& request;
  const ClassReplicas& class_replicas;
  double now = 0;
  std::int64_t nth = 0;  // requests routed before
  std::uint64_t seed = 0;
};

}  // namespace engine

// Which replica a request goes to: pure functions of what a router can see.
#pragma once

#include <cstdint>
#include <span>

#include "engine/serving/least_of.h"
#include "engine/serving/router_table.h"
#include "engine/workload/request.h"

namespace engine {

class Replica;

struct RouterView {
  std::span<const Replica> replicas;
  const LeastOf<std::int64_t>& weights;  // of the replicas, as the router's line in the table says
  const Request& request;
  std::int64_t nth = 0;  // requests routed before
  std::uint64_t seed = 0;
};

}  // namespace engine

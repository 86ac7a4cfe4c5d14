// Which replica a request goes to: pure functions of what a router can see.
#pragma once

#include <cstdint>
#include <span>

#include "engine/serving/serving_settings.h"
#include "engine/workload/request.h"

namespace engine {

class Replica;

struct RouterView {
  std::span<const Replica> replicas;
  const Request& request;
  std::int64_t nth = 0;  // requests routed before
  std::uint64_t seed = 0;
};

using RouteFunction = std::size_t (*)(const RouterView& view);

RouteFunction router_of(RouterName name);

// The replica with the fewest requests inside; the first of equals. What several routers fall back on.
std::size_t least_outstanding(const RouterView& view);

}  // namespace engine

#include <array>

#include "engine/base/check.h"
#include "engine/serving/router.h"

namespace engine {

std::size_t route_round_robin(const RouterView& view);
std::size_t route_random(const RouterView& view);
std::size_t route_least_tokens(const RouterView& view);
std::size_t route_power_of_two(const RouterView& view);
std::size_t route_prefix_aware(const RouterView& view);
std::size_t route_sticky(const RouterView& view);

namespace {

struct RouterEntry {
  RouterName name;
  RouteFunction route;
};
constexpr std::array kRouters{
    RouterEntry{RouterName::round_robin, route_round_robin},
    RouterEntry{RouterName::random, route_random},
    RouterEntry{RouterName::least_outstanding, least_outstanding},
    RouterEntry{RouterName::least_tokens, route_least_tokens},
    RouterEntry{RouterName::power_of_two, route_power_of_two},
    RouterEntry{RouterName::prefix_aware, route_prefix_aware},
    RouterEntry{RouterName::sticky, route_sticky},
};
static_assert(kRouters.size() == enum_names(RouterName{}).size());

}  // namespace

RouteFunction router_of(RouterName name) {
  const RouterEntry& entry = kRouters[std::size_t(name)];
  check(entry.name == name, "the router table is in the order of the names");
  return entry.route;
}

}  // namespace engine

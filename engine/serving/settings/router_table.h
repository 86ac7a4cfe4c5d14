// The routers: this table is the whole registry. Adding one: write it in routers.cc and add its line here;
// the laws of serving pick it up.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/base/counts.h"
#include "engine/base/named_table.h"

namespace engine {

struct RouterView;
using Route = std::size_t(const RouterView& view);

Route route_round_robin, route_random, route_lightest, route_power_of_two, route_prefix_aware,
    route_sticky, route_by_class, route_adapter_affine;

// What the index of the lightest replica compares, for routers that ask for it.
enum class ReplicaWeight : std::uint8_t { none, requests, tokens };

struct RouterEntry {
  std::string_view name;
  Route* route;
  ReplicaWeight weight = ReplicaWeight::none;
  bool reads_caches = false;  // it asks replicas what they hold of a prompt
  bool predicts = false;      // answers, but for serving.prediction_error
};

// Keys of points hold the position: new ones go to the end.
inline constexpr std::array kRouters{
    RouterEntry{"round_robin", route_round_robin},
    RouterEntry{"random", route_random},
    RouterEntry{"least_outstanding", route_lightest, ReplicaWeight::requests},
    RouterEntry{"least_tokens", route_lightest, ReplicaWeight::tokens},
    RouterEntry{"power_of_two", route_power_of_two},
    RouterEntry{"prefix_aware", route_prefix_aware, ReplicaWeight::requests, true},
    RouterEntry{"sticky", route_sticky},
    RouterEntry{.name = "least_predicted",
                .route = route_lightest,
                .weight = ReplicaWeight::tokens,
                .predicts = true},
    RouterEntry{"by_class", route_by_class},
    RouterEntry{"adapter_affine", route_adapter_affine, ReplicaWeight::requests},
};

// Position in the table.
enum class RouterName : std::uint8_t {};

constexpr auto enum_names(RouterName) { return names_of(kRouters); }

consteval RouterName router_named(std::string_view name) {
  return position_named<RouterName>(kRouters, name);
}

constexpr const RouterEntry& router_of(RouterName name) { return kRouters[std::size_t(name)]; }

template <auto property>
inline constexpr Condition router_has = condition_of({.kind = Test::Kind::named,
                                                      .path = "serving.router",
                                                      .names = positions_with<property>(kRouters)});

}  // namespace engine

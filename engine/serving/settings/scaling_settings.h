// How the number of replicas follows the load.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/enum_names.h"
#include "engine/base/fields.h"
#include "engine/base/units.h"

namespace engine {

enum class ScalingPolicy : std::uint8_t {
  fixed,       // all replicas, all the time
  reactive,    // as many as the requests inside need
  predictive,  // as many as they will need once a replica asked for now is ready
  scheduled,   // as a timetable says
};
constexpr std::array<std::string_view, 4> enum_names(ScalingPolicy) {
  return {"fixed", "reactive", "predictive", "scheduled"};
}

// Whether it looks at the load.
constexpr bool follows_load(ScalingPolicy policy) {
  return policy == ScalingPolicy::reactive || policy == ScalingPolicy::predictive;
}

struct ScalingSettings {
  ScalingPolicy policy = ScalingPolicy::fixed;
  std::int64_t min_replicas = 1;
  double target = 32;
  Seconds interval{15};
  Seconds cold_start{120};
  Seconds cooldown{300};
  std::string schedule;

  // Seconds until a fleet of at most so many units that follows a steady load has grown, has worked off what came meanwhile, and has
  // given up what it has too much of. A fleet whose least number is all of it has nothing to settle.
  Seconds settling(std::int64_t units) const {
    const bool settles = follows_load(policy) && min_replicas < units;
    return settles ? 2.0 * interval + cold_start + cooldown : Seconds{0};
  }

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("policy", self.policy,
          "how many of serving.replicas are on; fixed: all; reactive: what the requests inside "
          "need; predictive: what they will need when a cold replica is ready; scheduled: by "
          "time",
          any_value);
    visit("min_replicas", self.min_replicas,
          "fewest replicas that are on; and, under a trace or a curve, how many at first: a steady "
          "load begins with all, and is measured once too many have been given up; 0: all are "
          "given up when no request came for the cooldown, and the next request starts one at once "
          "and waits for it",
          between(0, 1 << 20).where(is_such<"serving.scaling.policy", follows_load>));
    visit("target", self.target,
          "requests inside a replica that reactive and predictive aim at; with parallel.dp above "
          "1, inside each of its data-parallel ranks",
          between(1e-3, 1e9).where(is_such<"serving.scaling.policy", follows_load>));
    visit("interval", self.interval,
          "time between two looks of reactive and predictive at the load",
          between(0.1, 1e9).where(is_such<"serving.scaling.policy", follows_load>));
    visit("cold_start", self.cold_start,
          "time from asking for a replica until it takes requests: machine, weights, warm-up",
          non_negative.where(is_none_of<"serving.scaling.policy", ScalingPolicy::fixed>));
    visit("cooldown", self.cooldown,
          "a replica is given up only when fewer were enough for this long",
          non_negative.where(is_such<"serving.scaling.policy", follows_load>));
    visit("schedule", self.schedule,
          "scheduled: 'second:replicas' pairs such as '0:2, 28800:10, 72000:4'; each number holds "
          "from its second, when replicas are asked for or given up, until the next; while it is 0 "
          "requests wait; where load.requests is auto, the last number holds as long as the one "
          "before it",
          any_value.where(is_one_of<"serving.scaling.policy", ScalingPolicy::scheduled>));
  }
};

}  // namespace engine

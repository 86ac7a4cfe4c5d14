// How two models share the devices that both are deployed on.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"
#include "engine/base/fields.h"
#include "engine/base/task.h"
#include "engine/base/units.h"

namespace engine {

enum class SharingMode : std::uint8_t {
  time_slices,  // one runs and then the other: two plain processes
  streams,      // both run at once on all multiprocessors, as the hardware mixes them
  spatial,      // each has multiprocessors of its own, and they share the memory's bandwidth
  mig,          // each has multiprocessors, bandwidth, cache and memory of its own
};
constexpr std::array<std::string_view, 4> enum_names(SharingMode) {
  return {"time_slices", "streams", "spatial", "mig"};
}

inline constexpr const Condition& with_time_slices =
    is_one_of<"sharing.mode", SharingMode::time_slices>;

struct SharingSettings {
  SharingMode mode = SharingMode::time_slices;
  double share = 0.5;
  double memory = 0.5;
  Seconds slice{0.002};
  Seconds switch_time{1e-4};
  bool swap = false;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("mode", self.mode,
          "time_slices: one model runs and then the other; streams: both at once on all "
          "multiprocessors; spatial: each on multiprocessors of its own, as with MPS limits or "
          "green contexts; mig: each on a slice of everything",
          any_value);
    visit("share", self.share,
          "the main deployment's share of the time (time_slices) or of the multiprocessors "
          "(spatial; mig: of everything); the neighbour has the rest. Any share is taken; devices "
          "divide multiprocessors into sevenths and memory into eighths for mig",
          between(0.01, 0.99).where(is_none_of<"sharing.mode", SharingMode::streams>));
    visit("memory", self.memory,
          "the main deployment's share of the memory; the neighbour has the rest",
          between(0.01, 0.99)
              .where(is_none_of<"sharing.mode", SharingMode::mig>)
              .where(either<"", is_zero<"sharing.swap">, while_serving>));
    visit("slice", self.slice,
          "time_slices: mean time that one runs before the other, while both have work",
          positive.where(with_time_slices)
              .where(either<"", is_above<"sharing.switch_time", 0>, is_set<"sharing.swap">>));
    visit("switch_time", self.switch_time,
          "time_slices: lost whenever the other's turn comes; 0.1 ms is what an H200 lost",
          non_negative.where(with_time_slices));
    visit("swap", self.swap,
          "time_slices: the weights of the model that does not run lie in host memory, and come "
          "over the host link at its turn. Task step: each then has the whole memory; task serve: "
          "KV caches stay and share, by sharing.memory, what the larger model leaves, and turns "
          "go by the clock",
          any_value);
  }
};

}  // namespace engine

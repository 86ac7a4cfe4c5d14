// How sequences get to the devices that train on them.
#pragma once

#include <cstdint>

#include "engine/base/fields.h"
#include "engine/base/units.h"

namespace engine {

struct LoadingSettings {
  Seconds sequence_time;
  std::int64_t workers = 1;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("sequence_time", self.sequence_time,
          "time that one process of the host takes to read and prepare one sequence "
          "(train.sequence tokens); 0: sequences are always there",
          non_negative.slower());
    visit("workers", self.workers,
          "processes of each replica (parallel.dp) that prepare the next step's sequences while "
          "it trains, as PyTorch's num_workers; 0: it waits for each sequence",
          non_negative.where(is_above<"train.loading.sequence_time", 0>));
  }

  bool operator==(const LoadingSettings&) const = default;
};

}  // namespace engine

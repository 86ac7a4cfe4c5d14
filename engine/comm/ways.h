// The ways a library may do a collective, and how long the one it takes is.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>

#include "engine/comm/collective_time.h"

namespace engine {

// One way to do it, in microseconds.
struct Way {
  double start;
  double transfer;
  double sent;  // bytes of one device
  Algorithm algorithm;
  double total() const { return start + transfer; }
};

// The ways of a library, and a soft minimum over them: near the crossing of two, calls take a little
// less than either curve says.
struct Ways {
  std::array<Way, 4> all;
  std::size_t count = 0;

  void add(const Way& way) { all[count++] = way; }
  CollectiveTime fastest(double sharpness) const {
    const Way* best = &all[0];
    for (std::size_t i = 1; i < count; ++i) {
      if (all[i].total() < best->total()) best = &all[i];
    }
    double sum = 1;
    for (std::size_t i = 0; i < count; ++i) {
      const double ratio = best->total() / all[i].total();
      // Ways three times slower add less than a thousandth at the sharpness of any fit.
      if (&all[i] != best) sum += std::pow(ratio, sharpness);
    }
    const double total = best->total() * std::pow(sum, -1 / sharpness);
    const double start = std::min(best->start, total);
    return {.latency = Seconds{start * 1e-6},
            .transfer = Seconds{(total - start) * 1e-6},
            .bytes = Bytes{best->sent},
            .algorithm = best->algorithm};
  }
};

}  // namespace engine

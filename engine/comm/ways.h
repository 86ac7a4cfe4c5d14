// The ways a library may do a collective, and how long the one it takes is.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "engine/comm/collective_time.h"

namespace engine {

// A start that was fitted on links of latency `of_fit`, where the link's is `latency`; both in microseconds. Of a start only what passes
// over the link follows its latency, as often as a message crosses it one after the other. The rest is the machine's own: kernels, flags,
// the library. Fitted starts say the same: on H100s, whose links take 0.9 us, each further device adds 0.9 us to a gather, where a
// piece crosses one more link, and 1.7 to a sum, where it crosses two.
inline double start_over_link(double fitted, double crossings, double latency, double of_fit) {
  return fitted + std::min(crossings, fitted / of_fit) * (latency - of_fit);
}

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

// What an op does, where no measurement says more: its time is the roofline of that (engine/kernels/counted.cc).
#pragma once

#include <cstdint>

namespace engine {

struct OpCounts {
  enum class Unit : std::uint8_t { vector, matrix };
  double flops = 0;
  double cold_bytes = 0;      // from or to memory in any case
  double resident_bytes = 0;  // activations, which the kernel before left in the cache if they fit
  Unit unit = Unit::vector;   // that does the arithmetic
  double of_peak = 1;         // which kernels reach of that unit's rate,
  double of_bandwidth = 1;    // and of the memory's or the cache's
  double kernels = 1;         // of the smallest kind, as long as which it takes before it works
  double cycles = 0;          // in which its parts wait for one another,
  double beside = 0;          // and the share of its arithmetic that is done meanwhile
};

}  // namespace engine

#include "engine/step/interval.h"

#include <array>
#include <cmath>
#include <cstddef>

namespace engine {

Interval interval_of(const std::vector<KernelRow>& rows, std::optional<Phase> phase) {
  struct Deviation {
    double below = 0;
    double above = 0;
  };
  std::array<Deviation, enum_names(Family{}).size()> families{};
  double total = 0;
  for (const KernelRow& row : rows) {
    if (phase && row.phase != *phase) continue;
    const Seconds time = row.work.exposed();
    Deviation& family = families[static_cast<std::size_t>(row.family)];
    family.below += (time - row.work.low).value;
    family.above += (row.work.high - time).value;
    total += time.value;
  }
  double below = 0, above = 0;
  for (const Deviation& family : families) {
    below += family.below * family.below;
    above += family.above * family.above;
  }
  return {Seconds{total - std::sqrt(below)}, Seconds{total + std::sqrt(above)}};
}

}  // namespace engine

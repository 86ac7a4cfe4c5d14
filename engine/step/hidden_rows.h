// Rows of a report of which some time passes beside other kernels.
#pragma once

#include <vector>

#include "engine/step/kernel_row.h"
#include "engine/step/overlap.h"

namespace engine {

// `seconds` in all of those rows of the main model that are `concerned`: of each the same share.
template <class Concerned>
void hide_rows(double seconds, const Device& device, std::vector<KernelRow>& rows,
               const Concerned& concerned) {
  const auto hides = [&](const KernelRow& row) {
    return row.role == DeploymentRole::main && concerned(row);
  };
  constexpr double rounding = 1e-12;  // leaves a little of what is hidden altogether
  Seconds all;
  for (const KernelRow& row : rows) {
    if (hides(row)) all += row.work.time;
  }
  for (KernelRow& row : rows) {
    if (!hides(row)) continue;
    const double share = seconds > all.value * (1 - rounding) ? 1 : seconds / all.value;
    row.work.hidden = row.work.time * share;
    row.work.low = row.work.low * (1 - share);
    row.work.high = row.work.high * (1 - share);
    draw_beside(row.work.hidden, device, row.work.energy);
  }
}

}  // namespace engine

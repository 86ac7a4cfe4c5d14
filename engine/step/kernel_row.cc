#include "engine/step/kernel_row.h"

#include <algorithm>

namespace engine {

void KernelRow::add(const KernelRow& other, double times) {
  calls += other.calls * times;
  time += other.time * times;
  low += other.low * times;
  high += other.high * times;
  flops += other.flops * times;
  bytes += other.bytes * times;
  saved.add(other.saved, times);
  if (saved.any()) bound = saved.largest();
  tier = std::min(tier, other.tier);
  extrapolated = extrapolated || other.extrapolated;
}

void merge_rows(const std::vector<KernelRow>& rows, std::vector<KernelRow>& into) {
  for (const KernelRow& row : rows) {
    const auto same = std::find_if(into.begin(), into.end(), [&row](const KernelRow& have) {
      return have.phase == row.phase && have.op == row.op && have.family == row.family;
    });
    if (same == into.end()) {
      into.push_back(row);
      continue;
    }
    same->algorithm = row.algorithm;
    same->add(row);
  }
}

}  // namespace engine

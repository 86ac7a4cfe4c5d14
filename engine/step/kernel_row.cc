#include "engine/step/kernel_row.h"

#include <algorithm>

namespace engine {

void merge_rows(const std::vector<KernelRow>& rows, std::vector<KernelRow>& into) {
  for (const KernelRow& row : rows) {
    const auto same = std::find_if(into.begin(), into.end(), [&row](const KernelRow& have) {
      return have.phase == row.phase && have.op == row.op && have.family == row.family;
    });
    if (same == into.end()) {
      into.push_back(row);
      continue;
    }
    const KernelRow before = *same;
    *same = row;
    same->calls += before.calls;
    same->time += before.time;
    same->low += before.low;
    same->high += before.high;
    same->flops += before.flops;
    same->bytes += before.bytes;
    same->tier = std::min(row.tier, before.tier);
    same->extrapolated = row.extrapolated || before.extrapolated;
  }
}

}  // namespace engine

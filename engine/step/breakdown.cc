#include "engine/step/breakdown.h"

#include <algorithm>
#include <utility>

namespace engine {

[[gnu::always_inline]] inline std::size_t Breakdown::place_of(const KernelRow& row, Phase phase) {
  std::int32_t* link = &first_[std::size_t(phase)][std::size_t(row.op)];
  while (*link != kNone) {
    const std::size_t place = std::size_t(*link);
    const KernelRow& there = rows_[place];
    if (there.family == row.family && there.role == row.role) return place;
    link = &places_[place].next;
  }
  *link = std::int32_t(rows_.size());
  rows_.push_back(
      {.role = row.role, .phase = phase, .op = row.op, .family = row.family, .tier = row.tier});
  places_.emplace_back();
  return rows_.size() - 1;
}

void Breakdown::add(const KernelRow& row, Phase phase, double times) {
  const std::size_t place = place_of(row, phase);
  KernelRow& sum = rows_[place];
  const Seconds contribution = row.work.time * times;
  if (contribution > places_[place].greatest) {
    places_[place].greatest = contribution;
    sum.algorithm = row.algorithm;
    sum.bound = row.bound;
  }
  sum.tier = std::min(sum.tier, row.tier);
  sum.extrapolated = sum.extrapolated || row.extrapolated;
  sum.work.add(row.work, times);
}

std::vector<KernelRow> Breakdown::take() && {
  for (KernelRow& row : rows_) {
    if (row.work.saved.any()) row.bound = row.work.saved.largest();
  }
  return std::move(rows_);
}

}  // namespace engine

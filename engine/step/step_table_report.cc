// Where the time of a whole simulation went, out of what its table counted.
#include <algorithm>

#include "engine/step/step_table.h"

namespace engine {
namespace {

// Sums rows by phase and op, at a known place each.
class RowSums {
 public:
  explicit RowSums(std::vector<KernelRow>& rows) : rows_(rows) {
    for (auto& phase : place_) phase.fill({-1, -1});
  }

  void add(const KernelRow& row, Phase phase, double weight) {
    // In mixed steps, attention of prompts and of decodes are two rows.
    const bool prompt = row.family == Family::attn_prefill || row.family == Family::mla_prefill;
    std::int32_t& place = place_[std::size_t(phase)][std::size_t(row.op)][prompt ? 1 : 0];
    if (place < 0) {
      place = std::int32_t(rows_.size());
      rows_.push_back({.phase = phase, .op = row.op, .family = row.family, .tier = row.tier});
    }
    KernelRow& sum = rows_[std::size_t(place)];
    const Seconds time = row.time * weight;
    // The labels are those of the greatest contribution.
    if (time > largest(place)) {
      largest_[std::size_t(place)] = time;
      sum.algorithm = row.algorithm;
      sum.bound = row.bound;
    }
    sum.tier = std::min(sum.tier, row.tier);
    sum.extrapolated = sum.extrapolated || row.extrapolated;
    sum.calls += row.calls * weight;
    sum.time += time;
    sum.flops += row.flops * weight;
    sum.bytes += row.bytes * weight;
  }

 private:
  Seconds largest(std::int32_t place) {
    if (std::size_t(place) >= largest_.size()) largest_.resize(std::size_t(place) + 1, Seconds{-1});
    return largest_[std::size_t(place)];
  }

  std::vector<KernelRow>& rows_;
  using Places = std::array<std::array<std::int32_t, 2>, enum_names(OpName{}).size()>;
  std::array<Places, enum_names(Phase{}).size()> place_;
  std::vector<Seconds> largest_;
};

}  // namespace

void StepTable::report(std::vector<KernelRow>& rows) {
  RowSums sums(rows);
  // Decode steps are counted by batch; their share of each grid point follows here, once.
  double gap = 0, decode_launches = 0;
  for (const DecodeBatch& batch : batches_) {
    weigh(batch.body, Phase::decode, batch.steps);
    weigh(batch.head, Phase::decode, batch.steps);
    if (latent_) weigh(batch.absorb, Phase::decode, batch.steps);
    gap += batch.gap * batch.steps;
    decode_launches += batch.launches * batch.steps;
  }
  for (std::size_t p = 0; p < kPhases; ++p) {
    const Phase phase = static_cast<Phase>(p);
    const std::size_t first = rows.size();
    for (const Node& node : nodes_) {
      if (node.weight[p] <= 0) continue;
      for (std::uint32_t i = node.first_row; i < node.last_row; ++i) {
        sums.add(rows_[i], phase, node.weight[p]);
      }
    }
    for (const Cell& cell : cells_) {
      if (cell.steps[p] <= 0) continue;
      const double high = (cell.sum[p] - cell.steps[p] * cell.low) / (cell.high - cell.low);
      sums.add(rows_[cell.row_low], phase, cell.steps[p] - high);
      sums.add(rows_[cell.row_high], phase, high);
    }
    for (const KernelRow& row : prefill_rows_) {
      if (row.phase == phase) sums.add(row, phase, 1);
    }
    double device = 0;
    for (std::size_t i = first; i < rows.size(); ++i) device += rows[i].time.value;
    HostTime host;
    host.gap = Seconds{phase == Phase::decode ? gap : 0};
    host.between = Seconds{std::max(0.0, seconds_[p] - device - host.gap.value)};
    // Rounding leaves crumbs where the host takes nothing.
    if (host.between.value < 1e-12 * seconds_[p]) host.between = Seconds{0};
    add_host_rows(host, decode_launches, steps_[p], phase, rows);
  }
}

}  // namespace engine

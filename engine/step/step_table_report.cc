// Where the time of a whole simulation went, out of what its table counted.
#include <algorithm>
#include <iterator>
#include <span>

#include "engine/kernels/power.h"
#include "engine/step/step_table.h"

namespace engine {
namespace {

bool is_made(std::int32_t index) { return index >= 0; }

}  // namespace

// Nodes and cells in the order of what they are for, whenever they were made: sums do not depend on
// who used the table before.
void StepTable::order_for_report() {
  if (node_order_.size() != nodes_.size()) {
    node_order_.clear();
    for (const Counts& counts : counts_) {
      std::copy_if(counts.node.begin(), counts.node.end(), std::back_inserter(node_order_),
                   is_made);
    }
  }
  if (cell_order_.size() != cells_.size()) {
    cell_order_.clear();
    for (const std::int32_t index : batch_index_) {
      if (index < 0) continue;
      const auto first = cell_index_.begin() + batches_[std::size_t(index)].first_cell;
      const auto last = first + cells_of_a_batch();
      std::copy_if(first, last, std::back_inserter(cell_order_), is_made);
    }
  }
}

// What was counted by tokens becomes steps that each grid point stands for.
void StepTable::weigh_nodes() {
  for (Node& node : nodes_) node.weight.fill(0);
  for (const Counts& counts : counts_) {
    for (const std::int32_t index : counts.index) {
      if (index < 0) continue;
      const Count& count = counts.met[std::size_t(index)];
      for (std::size_t p = 0; p < kPhases; ++p) {
        nodes_[std::size_t(count.low)].weight[p] += count.steps[p] * (1 - count.share);
        nodes_[std::size_t(count.high)].weight[p] += count.steps[p] * count.share;
      }
    }
  }
}

// What decode steps would save. The host's maximum is taken of the mean step of each batch size: its steps differ in
// context only.
void StepTable::save_decodes() {
  constexpr std::size_t decode = std::size_t(Phase::decode);
  for (DecodeBatch& batch : batches_) {
    batch.device_sum = batch.fixed * batch.steps + batch.alone.key_time * batch.alone.keys[decode];
    batch.saved_sum = {};
    batch.saved_sum.add(batch.fixed_saved, batch.steps);
    batch.saved_sum.add(batch.alone.key_saved, batch.alone.keys[decode]);
  }
  for (const std::int32_t index : cell_order_) {
    const Cell& cell = cells_[std::size_t(index)];
    if (cell.steps[decode] <= 0) continue;
    DecodeBatch& batch = batches_[std::size_t(cell.batch)];
    const double beyond = cell.sum[decode] - cell.steps[decode] * cell.low;
    batch.device_sum += cell.time_low * cell.steps[decode] + cell.slope * beyond;
    batch.saved_sum.add(cell.saved_low, cell.steps[decode]);
    batch.saved_sum.add(cell.saved_slope, beyond);
  }
  for (const std::int32_t index : batch_index_) {
    if (index < 0 || batches_[std::size_t(index)].steps <= 0) continue;
    const DecodeBatch& batch = batches_[std::size_t(index)];
    Savings mean;
    mean.add(batch.saved_sum, 1 / batch.steps);
    const HostLine line{.added = Seconds{batch.added}, .least = Seconds{batch.least}};
    saved_.add(step_savings(mean, Seconds{batch.device_sum / batch.steps}, line), batch.steps);
  }
}

void StepTable::report(std::vector<KernelRow>& rows) {
  Breakdown sums;
  // Decode steps are counted by batch; the counts of tokens they have follow here, once.
  ByPhase gaps = gaps_, launches = launches_;
  for (std::size_t sequences = 0; sequences < batch_index_.size(); ++sequences) {
    if (batch_index_[sequences] < 0) continue;
    const DecodeBatch& batch = batches_[std::size_t(batch_index_[sequences])];
    const auto count = [&](Part part, std::int64_t tokens) {
      count_at(part, tokens).steps[std::size_t(Phase::decode)] += batch.steps;
    };
    count(Part::body, batch.rows);
    if (exchanges_) count(Part::decode_exchange, batch.rows);
    count(Part::head, std::int64_t(sequences));
    if (latent_) count(Part::absorb, batch.rows);
    gaps[std::size_t(Phase::decode)] += batch.gap * batch.steps;
    launches[std::size_t(Phase::decode)] += (batch.launches + attention_launches_) * batch.steps;
  }
  weigh_nodes();
  order_for_report();
  save_decodes();
  for (std::size_t p = 0; p < kPhases; ++p) {
    const Phase phase = static_cast<Phase>(p);
    const std::size_t first = sums.rows().size();
    for (const std::int32_t index : node_order_) {
      const Node& node = nodes_[std::size_t(index)];
      if (node.weight[p] <= 0) continue;
      for (std::uint32_t i = node.first_row; i < node.last_row; ++i) {
        sums.add(rows_[i], phase, node.weight[p]);
      }
    }
    for (const std::int32_t index : cell_order_) {
      const Cell& cell = cells_[std::size_t(index)];
      if (cell.steps[p] <= 0) continue;
      const double high = (cell.sum[p] - cell.steps[p] * cell.low) / (cell.high - cell.low);
      sums.add(rows_[cell.row_low], phase, cell.steps[p] - high);
      sums.add(rows_[cell.row_high], phase, high);
    }
    for (const KernelRow& row : prompt_rows_.rows()) {
      if (row.phase == phase) sums.add(row);
    }
    for (const std::int32_t index : batch_index_) {
      if (index < 0) continue;
      const DecodeBatch& batch = batches_[std::size_t(index)];
      for (const Overhang* overhang : {&batch.alone, &batch.joined}) {
        if (overhang->keys[p] > 0) sums.add(rows_[overhang->row], phase, overhang->keys[p]);
      }
    }
    double device = 0;
    const std::span made = std::span(sums.rows()).subspan(first);
    for (const KernelRow& row : made) device += row.work.exposed().value;
    rows.insert(rows.end(), made.begin(), made.end());
    HostTime host;
    host.low = inputs_->host.low;
    host.high = inputs_->host.high;
    host.gap = Seconds{gaps[p]};
    host.between = Seconds{std::max(0.0, seconds_[p] - device - host.gap.value)};
    // Rounding leaves crumbs where the host takes nothing.
    if (host.between.value < 1e-12 * seconds_[p]) host.between = Seconds{0};
    add_host_rows(host, {.launches = launches[p], .steps = steps_[p]},
                  power_at_rest(context_->device), phase, rows);
  }
}

}  // namespace engine

#include "engine/step/attention_table.h"

#include <algorithm>
#include <iterator>

#include "engine/model/mixers/mixer.h"

namespace engine {

void AttentionTable::reset(const StepContext& context) {
  context_ = &context;
  for (Batch& batch : batches_) {
    batch.alone.keys.fill(0);
    batch.joined.keys.fill(0);
  }
  for (Cell& cell : cells_) {
    cell.steps.fill(0);
    cell.sum.fill(0);
  }
}

void AttentionTable::forget(const StepContext& context, std::int64_t queries) {
  context_ = &context;
  queries_ = queries;
  const ModelShard& shard = context.shard;
  full_ = shard.layers.full > 0;
  windowed_ = shard.layers.windowed > 0;
  joined_ = shard.joined_attention;
  uneven_ = shard.even_parts && full_;
  batches_.clear();
  cell_index_.clear();
  cells_.clear();
  batch_order_.clear();
  cell_order_.clear();
  rows_.clear();
  // The number of attention kernels depends neither on the batch nor on what it attends to.
  BatchShape one;
  add_decode(one, 1, 1, shard.model->window);
  launches_ = 0;
  for (const bool window : {false, true}) {
    launches_ += time_of(one, {.window = window}, nullptr).launches();
  }
}

void AttentionTable::add_batch(std::int64_t sequences) {
  Batch batch;
  batch.sequences = sequences;
  if (uneven_) {
    batch.alone = overhang_of(sequences, false);
    if (joined_) batch.joined = overhang_of(sequences, true);
  }
  batch.first_cell = std::uint32_t(cell_index_.size());
  cell_index_.resize(cell_index_.size() + std::size_t(cells_of_a_batch()), -1);
  batches_.push_back(batch);
}

std::int32_t AttentionTable::add_cell(std::int32_t batch, std::int64_t place, Kernel kernel) {
  const std::int64_t sequences = batches_[std::size_t(batch)].sequences;
  cells_.push_back(
      cell_between(sequences, ContextGrid::point(place), ContextGrid::point(place + 1), kernel));
  cells_.back().batch = batch;
  return std::int32_t(cells_.size()) - 1;
}

DeviceTime AttentionTable::time_of(const BatchShape& decodes, Kernel kernel,
                                   std::vector<KernelRow>* rows) const {
  const ModelShard& shard = context_->shard;
  OpList all, wanted;
  if (kernel.joined) {
    joined_decode_ops(shard, {.layers = shard.layers}, decodes, all);
  } else {
    attention_ops(shard, decodes, all);
  }
  const OpName name = kernel.window ? OpName::attention_window : OpName::attention;
  for (const PlannedOp& op : all) {
    if (op.name == name) wanted.add(op);
  }
  return device_time(wanted, *context_, Phase::decode, rows);
}

AttentionTable::Cell AttentionTable::cell_between(std::int64_t sequences, double low, double high,
                                                  Kernel kernel) {
  // Of equal contexts, that many tokens in all.
  const auto attention_at = [&](double context) {
    BatchShape batch;
    batch.decode_sequences = sequences;
    batch.decode_queries = queries_;
    batch.decode_kv_tokens = batch.decode_window_kv_tokens = context;
    return sums_of(time_of(batch, kernel, &rows_));
  };
  Cell cell;
  cell.low = low;
  cell.high = high;
  cell.row_low = std::uint32_t(rows_.size());
  cell.at_low = attention_at(low);
  cell.row_high = std::uint32_t(rows_.size());
  const KernelSums at_high = attention_at(high);
  cell.per_token.time = (at_high.time - cell.at_low.time) / (high - low);
  cell.per_token.saved.add(at_high.saved, 1 / (high - low));
  cell.per_token.saved.add(cell.at_low.saved, -1 / (high - low));
  return cell;
}

// The time of a key of overhang, all layers: it neither depends on how many there are, nor on the
// contexts of the others.
AttentionTable::Overhang AttentionTable::overhang_of(std::int64_t sequences, bool joined) {
  constexpr std::int64_t context = 1024, keys = 1024;
  BatchShape even;
  add_decode(even, sequences, context, context_->shard.model->window);
  even.decode_queries = queries_;
  BatchShape uneven = even;
  uneven.decode_longest += double(keys);
  std::vector<KernelRow> pair;
  time_of(even, {.joined = joined}, &pair);
  time_of(uneven, {.joined = joined}, &pair);
  // It adds time to calls that are counted where they belong, and no work.
  Work beyond = pair.back().work;
  beyond.add(pair.front().work, -1);
  beyond.calls = 0;
  beyond.flops = Flops{0};
  beyond.bytes = Bytes{0};
  beyond.from_memory = Bytes{0};
  KernelRow row = pair.back();
  row.work = {};
  row.work.add(beyond, 1 / double(keys));
  row.extrapolated = false;
  Overhang overhang;
  overhang.per_key.time = row.work.exposed().value;
  overhang.per_key.saved = row.work.saved;
  overhang.row = std::uint32_t(rows_.size());
  rows_.push_back(row);
  return overhang;
}

void AttentionTable::order(const std::vector<std::int32_t>& batches) {
  if (batch_order_.size() == batches.size() && cell_order_.size() == cells_.size()) return;
  batch_order_ = batches;
  cell_order_.clear();
  for (const std::int32_t batch : batches) {
    const auto first = cell_index_.begin() + batches_[std::size_t(batch)].first_cell;
    std::copy_if(first, first + cells_of_a_batch(), std::back_inserter(cell_order_),
                 [](std::int32_t index) { return index >= 0; });
  }
}

void AttentionTable::sum_by_batch(Phase phase, std::vector<KernelSums>& sums) const {
  const std::size_t p = std::size_t(phase);
  for (std::size_t i = 0; i < batches_.size(); ++i) {
    sums[i].add(batches_[i].alone.per_key, batches_[i].alone.keys[p]);
    sums[i].add(batches_[i].joined.per_key, batches_[i].joined.keys[p]);
  }
  for (const std::int32_t index : cell_order_) {
    const Cell& cell = cells_[std::size_t(index)];
    if (cell.steps[p] <= 0) continue;
    KernelSums& sum = sums[std::size_t(cell.batch)];
    sum.add(cell.at_low, cell.steps[p]);
    sum.add(cell.per_token, cell.sum[p] - cell.steps[p] * cell.low);
  }
}

void AttentionTable::report(Phase phase, Breakdown& rows) const {
  const std::size_t p = std::size_t(phase);
  for (const std::int32_t index : cell_order_) {
    const Cell& cell = cells_[std::size_t(index)];
    if (cell.steps[p] <= 0) continue;
    const double high = (cell.sum[p] - cell.steps[p] * cell.low) / (cell.high - cell.low);
    rows.add(rows_[cell.row_low], phase, cell.steps[p] - high);
    rows.add(rows_[cell.row_high], phase, high);
  }
  for (const std::int32_t index : batch_order_) {
    const Batch& batch = batches_[std::size_t(index)];
    for (const Overhang* overhang : {&batch.alone, &batch.joined}) {
      if (overhang->keys[p] > 0) rows.add(rows_[overhang->row], phase, overhang->keys[p]);
    }
  }
}

}  // namespace engine

// Filling a step table from the kernel model: each grid point, batch and cell once.
#include <algorithm>

#include "engine/step/octave_grid.h"
#include "engine/step/step_table.h"

namespace engine {
namespace {

// Token counts: whole up to 16, then at most 1/8 apart; tiles and waves make steps within that, which
// a straight line evens out.
using CountGrid = OctaveGrid<3>;

// Rows kept from run to run, some ten megabytes of them: what lengths and batches of a sweep share.
constexpr std::size_t kMostRows = 100'000;

}  // namespace

StepTable::Part StepTable::part_of(Grows grows, Part wanted) {
  switch (grows) {
    case Grows::tokens:
      return Part::body;
    case Grows::sampled:
      return Part::head;
    case Grows::decodes:
      return Part::absorb;
    case Grows::exchanged:
      return wanted == Part::decode_exchange ? wanted : Part::exchange;
    case Grows::context:
      return Part::prompt;
  }
  return Part::body;
}

void StepTable::reset(const StepContext& context, const StepScale& scale) {
  context_ = &context;
  scale_ = scale;
  prompt_rows_.clear();
  seconds_.fill(0);
  steps_.fill(0);
  gaps_.fill(0);
  launches_.fill(0);
  saved_ = {};
  StepInputs inputs(context);
  if (!inputs.recognisable() || inputs != inputs_ || rows_.size() > kMostRows) {
    forget();
    inputs_ = std::move(inputs);
    return;
  }
  for (Counts& counts : counts_) {
    for (Count& count : counts.met) count.steps.fill(0);
  }
  for (DecodeBatch& batch : batches_) {
    batch.steps = 0;
    batch.alone.keys.fill(0);
    batch.joined.keys.fill(0);
  }
  for (Cell& cell : cells_) {
    cell.steps.fill(0);
    cell.sum.fill(0);
  }
}

void StepTable::forget() {
  latent_ = context_->shard.model->is_mla();
  exchanges_ = context_->shard.expert_replicas > 1;
  windowed_ = context_->shard.layers.windowed > 0;
  joined_ = context_->shard.joined_attention;
  full_ = context_->shard.layers.full > 0;
  uneven_ = context_->shard.even_parts && full_;
  for (Counts& counts : counts_) {
    counts.node.clear();
    counts.index.clear();
    counts.met.clear();
  }
  nodes_.clear();
  node_order_.clear();
  cell_order_.clear();
  rows_.clear();
  batch_index_.clear();
  batches_.clear();
  cell_index_.clear();
  cells_.clear();
  // The number of attention kernels depends neither on the batch nor on what it attends to.
  attention_launches_ = 0;
  BatchShape one;
  add_decode(one, 1, 1, context_->shard.model->window);
  for (const bool window : {false, true}) {
    attention_launches_ += attention_of(one, {.window = window}, nullptr).launches();
  }
}

std::int32_t StepTable::node_at(Part part, std::int64_t point) {
  std::vector<std::int32_t>& index = counts_[std::size_t(part)].node;
  // Attention of a prompt grows with its square: every length is a grid point of its own.
  const std::int64_t place = part == Part::prompt ? point : CountGrid::place(double(point));
  if (place >= std::int64_t(index.size())) index.resize(std::size_t(place) + 1, -1);
  std::int32_t& node_index = index[std::size_t(place)];
  if (node_index >= 0) return node_index;

  BatchShape batch;
  scratch_ops_.clear();
  scratch_part_.clear();
  if (part == Part::prompt) {
    add_prefill(batch, 1, point, 0, context_->shard.model->window);
    attention_ops(context_->shard, batch, scratch_part_);
  } else {
    const bool decodes = part == Part::absorb || part == Part::decode_exchange;
    (decodes ? batch.decode_sequences : batch.prefill_tokens) = point;
    if (part == Part::head) batch.prefill_tokens = 1, batch.sampled = point;
    token_ops(context_->shard, batch, scratch_ops_);
    for (const PlannedOp& op : scratch_ops_) {
      if (part_of(op.grows, part) == part) scratch_part_.add(op);
    }
  }
  Node node;
  node.first_row = std::uint32_t(rows_.size());
  const DeviceTime time = device_time(scratch_part_, *context_, Phase::decode, &rows_);
  node.last_row = std::uint32_t(rows_.size());
  node.time = time.total().value;
  node.launches = time.launches();
  node.saved = time.saved();
  nodes_.push_back(node);
  return node_index = std::int32_t(nodes_.size() - 1);
}

void StepTable::add_count(Part part, std::int64_t number) {
  const double x = double(number);
  const std::int64_t place = CountGrid::place(x);
  const double low = CountGrid::point(place), high = CountGrid::point(place + 1);
  Count count;
  // Below 16 every whole number is a grid point, and so are most captured batch sizes.
  if (part == Part::prompt || low == x) {
    count.low = count.high = node_at(part, number);
  } else {
    count.low = node_at(part, std::int64_t(low));
    count.high = node_at(part, std::int64_t(high));
    count.share = (x - low) / (high - low);
  }
  const Node& below = nodes_[std::size_t(count.low)];
  count.time = below.time + count.share * (nodes_[std::size_t(count.high)].time - below.time);
  count.launches = below.launches;
  count.saved.add(below.saved, 1 - count.share);
  count.saved.add(nodes_[std::size_t(count.high)].saved, count.share);
  Counts& counts = counts_[std::size_t(part)];
  if (std::size_t(number) >= counts.index.size()) counts.index.resize(std::size_t(number) + 1, -1);
  counts.index[std::size_t(number)] = std::int32_t(counts.met.size());
  counts.met.push_back(count);
}

void StepTable::add_batch(std::int64_t sequences) {
  const LaunchMode mode = launch_mode(true, sequences, context_->host);
  DecodeBatch batch;
  batch.rows = mode == LaunchMode::replay ? captured_batch(sequences, context_->host) : sequences;
  const auto add = [&](Part part, std::int64_t tokens) {
    const Count& count = count_at(part, tokens);
    batch.fixed += count.time;
    batch.launches += count.launches;
    batch.fixed_saved.add(count.saved);
  };
  add(Part::body, batch.rows);
  if (exchanges_) add(Part::decode_exchange, batch.rows);
  add(Part::head, sequences);
  if (latent_) add(Part::absorb, batch.rows);
  const HostLine host = host_line({.launches = batch.launches + attention_launches_,
                                   .sequences = sequences,
                                   .streamed = sequences},
                                  mode, context_->host);
  batch.added = host.added.value;
  batch.least = host.least.value;
  batch.gap = host.gap.value;
  if (uneven_) {
    batch.alone = overhang_of(sequences, false);
    if (joined_) batch.joined = overhang_of(sequences, true);
  }
  batch.first_cell = std::uint32_t(cell_index_.size());
  const std::int64_t places = cells_of_a_batch();
  cell_index_.resize(cell_index_.size() + std::size_t(places), -1);
  if (std::size_t(sequences) >= batch_index_.size()) {
    batch_index_.resize(std::size_t(sequences) + 1, -1);
  }
  batch_index_[std::size_t(sequences)] = std::int32_t(batches_.size());
  batches_.push_back(batch);
}

// The time of a key of overhang, all layers: it neither depends on how many there are, nor on the
// contexts of the others.
StepTable::Overhang StepTable::overhang_of(std::int64_t sequences, bool joined) {
  constexpr std::int64_t context = 1024, keys = 1024;
  BatchShape even;
  add_decode(even, sequences, context, context_->shard.model->window);
  BatchShape uneven = even;
  uneven.decode_longest += double(keys);
  scratch_rows_.clear();
  const DeviceTime less = attention_of(even, {.joined = joined}, &scratch_rows_);
  const DeviceTime more = attention_of(uneven, {.joined = joined}, &scratch_rows_);
  Overhang overhang;
  overhang.key_time = (more.total() - less.total()).value / double(keys);
  overhang.key_saved.add(more.saved(), 1 / double(keys));
  overhang.key_saved.add(less.saved(), -1 / double(keys));
  overhang.row = std::uint32_t(rows_.size());
  // It adds time to calls that are counted where they belong, and no work.
  KernelRow row = scratch_rows_.back();
  Work& work = row.work;
  work.add(scratch_rows_.front().work, -1);
  work.calls = 0;
  work.flops = Flops{0};
  work.bytes = Bytes{0};
  Work key;
  key.add(work, 1 / double(keys));
  work = key;
  row.extrapolated = false;
  rows_.push_back(row);
  return overhang;
}

DeviceTime StepTable::attention_of(const BatchShape& decodes, DecodeKernel kernel,
                                   std::vector<KernelRow>* rows) {
  scratch_ops_.clear();
  scratch_part_.clear();
  if (kernel.joined) {
    joined_decode_ops(context_->shard, {.layers = context_->shard.layers}, decodes, scratch_ops_);
  } else {
    attention_ops(context_->shard, decodes, scratch_ops_);
  }
  const OpName wanted = kernel.window ? OpName::attention_window : OpName::attention;
  for (const PlannedOp& op : scratch_ops_) {
    if (op.name == wanted) scratch_part_.add(op);
  }
  return device_time(scratch_part_, *context_, Phase::decode, rows);
}

// Of equal contexts, `context` in all.
DeviceTime StepTable::attention_at(std::int64_t sequences, double context, DecodeKernel kernel) {
  BatchShape batch;
  batch.decode_sequences = sequences;
  batch.decode_kv_tokens = batch.decode_window_kv_tokens = context;
  return attention_of(batch, kernel, &rows_);
}

StepTable::Cell StepTable::cell_between(std::int64_t sequences, double low, double high,
                                        DecodeKernel kernel) {
  Cell cell;
  cell.low = low;
  cell.high = high;
  cell.row_low = std::uint32_t(rows_.size());
  const DeviceTime at_low = attention_at(sequences, low, kernel);
  cell.row_high = std::uint32_t(rows_.size());
  const DeviceTime at_high = attention_at(sequences, high, kernel);
  cell.time_low = at_low.total().value;
  cell.slope = (at_high.total().value - cell.time_low) / (high - low);
  cell.saved_low = at_low.saved();
  cell.saved_slope.add(at_high.saved(), 1 / (high - low));
  cell.saved_slope.add(at_low.saved(), -1 / (high - low));
  return cell;
}

double StepTable::prompt_token_seconds() {
  constexpr std::int64_t tokens = 2048;
  return count_at(Part::body, tokens).time / double(tokens);
}

}  // namespace engine

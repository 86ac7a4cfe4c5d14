#include "engine/step/step_table.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace engine {
namespace {

// Points that divide every octave of the positive numbers evenly: the leading bits of a double are
// its place among them, and back.
template <int Bits>
struct OctaveGrid {
  static constexpr std::int64_t per_octave = std::int64_t{1} << Bits;
  static constexpr std::uint64_t one = std::bit_cast<std::uint64_t>(1.0) >> (52 - Bits);

  static std::int64_t place(double x) {
    return std::int64_t((std::bit_cast<std::uint64_t>(x) >> (52 - Bits)) - one);
  }
  static double point(std::int64_t place) {
    return std::bit_cast<double>((std::uint64_t(place) + one) << (52 - Bits));
  }
};

// Token counts: whole up to 16, then at most 1/8 apart; tiles and waves make steps within that, which
// a straight line evens out.
using CountGrid = OctaveGrid<3>;
// Contexts: attention is nearly linear in them (exactly, in the roofline tier, but for one bend).
using ContextGrid = OctaveGrid<2>;
constexpr std::int64_t kContextPlaces = 44 * ContextGrid::per_octave;

bool in_head(OpName name) {
  return name == OpName::logits || name == OpName::logits_gather || name == OpName::sampling;
}
bool in_absorb(OpName name) { return name == OpName::q_absorb || name == OpName::v_absorb; }

}  // namespace

void StepTable::reset(const StepContext& context) {
  context_ = &context;
  latent_ = context.shard.model->is_mla();
  windowed_ = context.shard.layers.windowed > 0;
  full_ = context.shard.layers.full > 0;
  for (Grid& grid : grids_) grid.node.clear();
  nodes_.clear();
  rows_.clear();
  batch_index_.clear();
  batches_.clear();
  cell_index_.clear();
  cells_.clear();
  prefill_rows_.clear();
  fresh_.clear();
  seconds_.fill(0);
  steps_.fill(0);
  // The number of attention kernels depends neither on the batch nor on what it attends to.
  attention_launches_ = 0;
  double launches = 0;
  for (const bool window : {false, true}) {
    attention_at(1, 1, window, nullptr, &launches);
    attention_launches_ += launches;
  }
}

std::int32_t StepTable::node_at(Part part, std::int64_t point) {
  std::vector<std::int32_t>& index = grids_[std::size_t(part)].node;
  const std::int64_t place = CountGrid::place(double(point));
  if (place >= std::int64_t(index.size())) index.resize(std::size_t(place) + 1, -1);
  std::int32_t& node_index = index[std::size_t(place)];
  if (node_index >= 0) return node_index;

  BatchShape batch;
  if (part == Part::body) batch.prefill_tokens = point;
  if (part == Part::head) batch.prefill_tokens = 1, batch.sampled = point;
  if (part == Part::absorb) batch.decode_sequences = point;
  scratch_ops_.clear();
  token_ops(context_->shard, batch, scratch_ops_);
  scratch_part_.clear();
  for (const PlannedOp& op : scratch_ops_) {
    const bool head = in_head(op.name), absorb = in_absorb(op.name);
    const bool wanted = part == Part::body ? !head && !absorb : part == Part::head ? head : absorb;
    if (wanted) scratch_part_.add(op.name, op.family, op.calls, op.op);
  }
  Node node;
  node.first_row = std::uint32_t(rows_.size());
  const DeviceTime time = device_time(scratch_part_, *context_, Phase::decode, &rows_);
  node.last_row = std::uint32_t(rows_.size());
  node.time = time.total().value;
  node.launches = time.launches;
  nodes_.push_back(node);
  return node_index = std::int32_t(nodes_.size() - 1);
}

StepTable::Blend StepTable::blend(Part part, std::int64_t count) {
  const double x = double(count);
  const std::int64_t place = CountGrid::place(x);
  const double low = CountGrid::point(place);
  const std::int32_t low_node = node_at(part, std::int64_t(low));
  // Below 16 every whole number is a grid point, and so are most captured batch sizes.
  if (low == x) return {low_node, low_node, 0};
  const double high = CountGrid::point(place + 1);
  return {low_node, node_at(part, std::int64_t(high)), (x - low) / (high - low)};
}

double StepTable::time_of(const Blend& blend) const {
  const double low = nodes_[std::size_t(blend.low)].time;
  return low + blend.share * (nodes_[std::size_t(blend.high)].time - low);
}

double StepTable::launches_of(const Blend& blend) const {
  return nodes_[std::size_t(blend.low)].launches;
}

void StepTable::weigh(const Blend& blend, Phase phase, double weight) {
  nodes_[std::size_t(blend.low)].weight[std::size_t(phase)] += weight * (1 - blend.share);
  if (blend.share > 0) {
    nodes_[std::size_t(blend.high)].weight[std::size_t(phase)] += weight * blend.share;
  }
}

std::int32_t StepTable::batch_of(std::int64_t sequences) {
  if (sequences >= std::int64_t(batch_index_.size())) {
    batch_index_.resize(std::size_t(sequences) + 1, -1);
  }
  if (batch_index_[std::size_t(sequences)] >= 0) return batch_index_[std::size_t(sequences)];

  const LaunchMode mode = launch_mode(true, sequences, context_->host);
  const std::int64_t rows =
      mode == LaunchMode::replay ? captured_batch(sequences, context_->host) : sequences;
  DecodeBatch batch;
  batch.body = blend(Part::body, rows);
  batch.head = blend(Part::head, sequences);
  batch.fixed = time_of(batch.body) + time_of(batch.head);
  batch.launches = launches_of(batch.body) + launches_of(batch.head);
  if (latent_) {
    batch.absorb = blend(Part::absorb, rows);
    batch.fixed += time_of(batch.absorb);
    batch.launches += launches_of(batch.absorb);
  }
  const HostLine host =
      host_line(batch.launches + attention_launches_, sequences, mode, context_->host);
  batch.added = host.added.value;
  batch.least = host.least.value;
  batch.gap = host.gap.value;
  batch.first_cell = std::uint32_t(cell_index_.size());
  cell_index_.resize(cell_index_.size() + std::size_t(kContextPlaces), -1);
  if (windowed_) {
    batch.first_window_cell = std::uint32_t(cell_index_.size());
    cell_index_.resize(cell_index_.size() + std::size_t(kContextPlaces), -1);
  }
  batches_.push_back(batch);
  return batch_index_[std::size_t(sequences)] = std::int32_t(batches_.size() - 1);
}

double StepTable::attention_at(std::int64_t sequences, double context, bool window,
                               std::vector<KernelRow>* rows, double* launches) {
  BatchShape batch;
  batch.decode_sequences = sequences;
  batch.decode_kv_tokens = batch.decode_window_kv_tokens = context;
  scratch_ops_.clear();
  scratch_part_.clear();
  attention_ops(context_->shard, batch, scratch_ops_);
  const OpName wanted = window ? OpName::attention_window : OpName::attention;
  for (const PlannedOp& op : scratch_ops_) {
    if (op.name == wanted) scratch_part_.add(op.name, op.family, op.calls, op.op);
  }
  const DeviceTime time = device_time(scratch_part_, *context_, Phase::decode, rows);
  if (launches != nullptr) *launches = time.launches;
  return time.total().value;
}

std::int32_t StepTable::cell_at(std::int32_t batch, std::int64_t sequences, double context,
                                bool window) {
  const DecodeBatch& entry = batches_[std::size_t(batch)];
  const std::int64_t place = ContextGrid::place(context);
  const std::size_t first = window ? entry.first_window_cell : entry.first_cell;
  std::int32_t& index = cell_index_[first + std::size_t(std::min(place, kContextPlaces - 1))];
  if (index >= 0) return index;
  Cell cell;
  cell.low = ContextGrid::point(place);
  cell.high = ContextGrid::point(place + 1);
  cell.row_low = std::uint32_t(rows_.size());
  cell.time_low = attention_at(sequences, cell.low, window, &rows_, nullptr);
  cell.row_high = std::uint32_t(rows_.size());
  cell.time_high = attention_at(sequences, cell.high, window, &rows_, nullptr);
  cells_.push_back(cell);
  return index = std::int32_t(cells_.size() - 1);
}

DecodeLine StepTable::decode_line(std::int64_t sequences, double context, double window) {
  DecodeLine line;
  line.batch = batch_of(sequences);
  {
    const DecodeBatch& batch = batches_[std::size_t(line.batch)];
    line.fixed = batch.fixed;
    line.added = batch.added;
    line.least = batch.least;
  }
  line.context_end = line.window_end = std::numeric_limits<double>::infinity();
  if (full_) {
    line.cell = cell_at(line.batch, sequences, context, false);
    const Cell& cell = cells_[std::size_t(line.cell)];
    line.slope = (cell.time_high - cell.time_low) / (cell.high - cell.low);
    line.fixed += cell.time_low - line.slope * cell.low;
    line.context_end = cell.high;
  }
  if (windowed_) {
    line.window_cell = cell_at(line.batch, sequences, window, true);
    const Cell& cell = cells_[std::size_t(line.window_cell)];
    line.window_slope = (cell.time_high - cell.time_low) / (cell.high - cell.low);
    line.fixed += cell.time_low - line.window_slope * cell.low;
    line.window_end = cell.high;
  }
  return line;
}

void StepTable::count_decode(const DecodeLine& line, double steps, double context_sum,
                             double window_sum, double seconds) {
  constexpr std::size_t phase = std::size_t(Phase::decode);
  batches_[std::size_t(line.batch)].steps += steps;
  if (line.cell >= 0) {
    cells_[std::size_t(line.cell)].steps[phase] += steps;
    cells_[std::size_t(line.cell)].sum[phase] += context_sum;
  }
  if (line.window_cell >= 0) {
    cells_[std::size_t(line.window_cell)].steps[phase] += steps;
    cells_[std::size_t(line.window_cell)].sum[phase] += window_sum;
  }
  seconds_[phase] += seconds;
  steps_[phase] += steps;
}

// One prompt read from its start on is what most steps with prompts have, and lengths recur: timed
// once each, exactly, and counted like a grid point.
std::int32_t StepTable::fresh_prompt(std::int64_t tokens) {
  if (tokens >= std::int64_t(fresh_.size())) fresh_.resize(std::size_t(tokens) + 1, -1);
  if (fresh_[std::size_t(tokens)] >= 0) return fresh_[std::size_t(tokens)];
  BatchShape batch;
  add_prefill(batch, 1, tokens, 0, context_->shard.model->window);
  scratch_ops_.clear();
  attention_ops(context_->shard, batch, scratch_ops_);
  Node node;
  node.first_row = std::uint32_t(rows_.size());
  const DeviceTime time = device_time(scratch_ops_, *context_, Phase::prefill, &rows_);
  node.last_row = std::uint32_t(rows_.size());
  node.time = time.total().value;
  node.launches = time.launches;
  nodes_.push_back(node);
  return fresh_[std::size_t(tokens)] = std::int32_t(nodes_.size() - 1);
}

// Decodes that the prompts' kernel attends for are timed with the prompts.
bool StepTable::joins_decodes(const BatchShape& batch) const {
  return context_->shard.joined_attention && batch.decode_sequences > 0 && batch.prefill_tokens > 0;
}

void StepTable::run_prefill_attention(const BatchShape& batch, Phase phase, double& time,
                                      double& launches) {
  const bool joined = joins_decodes(batch);
  if (!joined && batch.prefill_sequences == 1 &&
      batch.prefill_kv_tokens == double(batch.prefill_tokens)) {
    Node& node = nodes_[std::size_t(fresh_prompt(batch.prefill_tokens))];
    node.weight[std::size_t(phase)] += 1;
    time += node.time;
    launches += node.launches;
    return;
  }
  BatchShape prompts = batch;
  if (!joined) prompts.decode_sequences = 0;
  scratch_ops_.clear();
  attention_ops(context_->shard, prompts, scratch_ops_);
  scratch_rows_.clear();
  const DeviceTime attention = device_time(scratch_ops_, *context_, phase, &scratch_rows_);
  time += attention.total().value;
  launches += attention.launches;
  for (const KernelRow& row : scratch_rows_) {
    auto same = std::find_if(
        prefill_rows_.begin(), prefill_rows_.end(),
        [&](const KernelRow& have) { return have.op == row.op && have.phase == row.phase; });
    if (same == prefill_rows_.end()) {
      prefill_rows_.push_back(row);
      continue;
    }
    same->calls += row.calls;
    same->time += row.time;
    same->flops += row.flops;
    same->bytes += row.bytes;
    same->tier = std::min(same->tier, row.tier);
    same->extrapolated = same->extrapolated || row.extrapolated;
  }
}

double StepTable::run_mixed(const BatchShape& batch) {
  const Phase phase = batch.decode_sequences > 0 ? Phase::mixed : Phase::prefill;
  const Blend body = blend(Part::body, batch.tokens());
  weigh(body, phase, 1);
  double time = time_of(body), launches = launches_of(body);
  if (batch.sampled > 0) {
    const Blend head = blend(Part::head, batch.sampled);
    weigh(head, phase, 1);
    time += time_of(head);
    launches += launches_of(head);
  }
  if (batch.decode_sequences > 0) {
    if (latent_) {
      const Blend absorb = blend(Part::absorb, batch.decode_sequences);
      weigh(absorb, phase, 1);
      time += time_of(absorb);
      launches += launches_of(absorb);
    }
    const auto attend = [&](double context, bool window) {
      const std::int32_t index =
          cell_at(batch_of(batch.decode_sequences), batch.decode_sequences, context, window);
      Cell& cell = cells_[std::size_t(index)];
      cell.steps[std::size_t(phase)] += 1;
      cell.sum[std::size_t(phase)] += context;
      const double share = (context - cell.low) / (cell.high - cell.low);
      time += cell.time_low + share * (cell.time_high - cell.time_low);
    };
    if (!joins_decodes(batch)) {
      if (full_) attend(batch.decode_kv_tokens, false);
      if (windowed_) attend(batch.decode_window_kv_tokens, true);
      launches += attention_launches_;
    }
  }
  run_prefill_attention(batch, phase, time, launches);
  const std::int64_t sequences = batch.prefill_sequences + batch.decode_sequences;
  const HostLine host = host_line(launches, sequences, LaunchMode::eager, context_->host);
  const double seconds = std::max(time + host.added.value, host.least.value);
  seconds_[std::size_t(phase)] += seconds;
  steps_[std::size_t(phase)] += 1;
  return seconds;
}

double StepTable::prompt_token_seconds() {
  constexpr std::int64_t tokens = 2048;
  return time_of(blend(Part::body, tokens)) / double(tokens);
}

}  // namespace engine

#include "engine/step/token_table.h"

#include <algorithm>
#include <iterator>

#include "engine/step/octave_grid.h"

namespace engine {
namespace {

using Part = TokenTable::Part;

// Token counts: whole up to 16, then at most 1/8 apart. Products take a step up right behind a full tile, which most grid
// points are: between two of them a line begins one token behind the lower one, on the stair that it is part of.
using CountGrid = OctaveGrid<3>;

// Where counts are kept among the nodes: grid points, and behind each the count that follows it.
std::int64_t node_of_point(std::int64_t place) { return 2 * place; }
std::int64_t node_behind(std::int64_t place) { return 2 * place + 1; }

bool is_fuller(Part part) { return part == Part::fuller || part == Part::decode_fuller; }
bool is_fullest(Part part) { return part == Part::fullest || part == Part::decode_fullest; }

// Parts that are an exchange. The caller knows which of them its layout has.
bool is_exchange(Part part) {
  return part == Part::decode_exchange || is_fuller(part) || is_fullest(part);
}

ExpertExchange::Receiver receiver_of(Part part) {
  using Receiver = ExpertExchange::Receiver;
  if (is_fuller(part)) return Receiver::excess;
  return is_fullest(part) ? Receiver::fullest : Receiver::mean;
}

// The part that an op belongs to, in a list made for the table of `wanted`. What runs beside an exchange is timed with it,
// but where replicas step together: there the exchange is as long as it is for the one that sends most.
Part part_of(const PlannedOp& op, Part wanted, bool lockstep) {
  // But attention to prompts that several devices read, whose exchange is beside it, is the prompts'.
  const bool beside = op.beside.group > 0 && op.grows != Grows::context;
  if (lockstep && op.name == OpName::experts) return Part::experts;
  if (lockstep && beside && op.grows == Grows::tokens) return Part::beside;
  switch (beside ? Grows::exchanged : op.grows) {
    case Grows::tokens:
      return Part::body;
    case Grows::sampled:
      return Part::head;
    case Grows::decodes:
      return Part::absorb;
    case Grows::exchanged:
      return is_exchange(wanted) ? wanted : Part::exchange;
    case Grows::context:
      return wanted == Part::prompt_attention && is_attention(op.family) ? wanted : Part::prompt;
  }
  return Part::body;
}

// The fewest tokens of a step that sends so many to its experts, since a token is never divided.
std::int64_t smallest_step(std::int64_t expert_tokens, const ModelShard& shard) {
  return expert_tokens > shard.expert_replicas ? 2 : 1;
}

// A step that has `point` of what a part grows with.
BatchShape batch_with(Part part, std::int64_t point, const ModelShard& shard) {
  BatchShape batch;
  switch (part) {
    case Part::body:
    case Part::exchange:
    case Part::beside:
      batch.prefill_tokens = point;
      break;
    case Part::head:
      batch.prefill_tokens = 1;
      batch.sampled = point;
      break;
    case Part::absorb:
    case Part::decode_exchange:
      batch.decode_sequences = point;
      break;
    case Part::prompt:
    case Part::prompt_attention:
      add_prefill(batch, 1, point, 0, shard.model->window);
      break;
    case Part::decode_fullest:
    case Part::decode_fuller:
      batch.decode_sequences = smallest_step(point, shard);
      batch.expert_tokens = point;
      break;
    case Part::experts:
    case Part::fullest:
    case Part::fuller:
      batch.prefill_tokens = smallest_step(point, shard);
      batch.expert_tokens = point;
      break;
  }
  return batch;
}

}  // namespace

void TokenTable::reset(const StepContext& context) {
  context_ = &context;
  for (Counts& counts : counts_) {
    for (Count& count : counts.met) count.steps.fill(0);
  }
  for (Node& node : nodes_) node.steps.fill(0);
}

void TokenTable::forget(const StepContext& context) {
  context_ = &context;
  for (Counts& counts : counts_) {
    counts.node.clear();
    counts.index.clear();
    counts.met.clear();
  }
  nodes_.clear();
  order_.clear();
  rows_.clear();
}

void TokenTable::part_ops(Part part, std::int64_t point, OpList& ops) const {
  const ModelShard& shard = context_->shard;
  const BatchShape batch = batch_with(part, point, shard);
  OpList all;
  if (part == Part::prompt || part == Part::prompt_attention) {
    attention_ops(shard, batch, all);
  } else {
    token_ops(shard, batch, all);
  }
  for (PlannedOp op : all) {
    if (part_of(op, part, shard.lockstep) != part) continue;
    if (auto* travel = std::get_if<ExpertExchange>(&op.op); travel != nullptr && shard.lockstep) {
      travel->receiver = receiver_of(part);
    }
    ops.add(op);
  }
}

std::int32_t TokenTable::add_node(Part part, std::int64_t place, std::int64_t point) {
  std::vector<std::int32_t>& index = counts_[std::size_t(part)].node;
  if (place >= std::int64_t(index.size())) index.resize(std::size_t(place) + 1, -1);
  OpList ops;
  part_ops(part, point, ops);
  Node node;
  node.first_row = std::uint32_t(rows_.size());
  node.sums = sums_of(device_time(ops, *context_, Phase::decode, &rows_));
  node.last_row = std::uint32_t(rows_.size());
  if (is_fuller(part)) {
    // The calls are the exchange's own.
    node.sums.launches = 0;
    for (std::size_t i = node.first_row; i < node.last_row; ++i) rows_[i].work.calls = 0;
  }
  nodes_.push_back(node);
  return index[std::size_t(place)] = std::int32_t(nodes_.size() - 1);
}

TokenTable::Spot TokenTable::spot(Part part, std::int64_t tokens) {
  Spot spot;
  // Attention of a prompt grows with its square: every length is a grid point of its own.
  if (part == Part::prompt || part == Part::prompt_attention) {
    spot.low = spot.high = node_at(part, tokens, tokens);
    return spot;
  }
  const double x = double(tokens);
  const std::int64_t place = CountGrid::place(x);
  const double full = CountGrid::point(place), high = CountGrid::point(place + 1);
  const double low = full + 1;
  // Below 16 every whole number is a grid point, and so are most captured batch sizes.
  if (x == full || x == low) {
    const std::int64_t node = x == full ? node_of_point(place) : node_behind(place);
    spot.low = spot.high = node_at(part, node, tokens);
  } else {
    spot.low = node_at(part, node_behind(place), std::int64_t(low));
    spot.high = node_at(part, node_of_point(place + 1), std::int64_t(high));
    spot.share = (x - low) / (high - low);
  }
  return spot;
}

KernelSums TokenTable::at(const Spot& spot) const {
  const KernelSums& below = nodes_[std::size_t(spot.low)].sums;
  if (spot.low == spot.high) return below;
  const KernelSums& above = nodes_[std::size_t(spot.high)].sums;
  KernelSums sums;
  sums.time = time_at(spot);
  sums.launches = below.launches;
  sums.saved.add(below.saved, 1 - spot.share);
  sums.saved.add(above.saved, spot.share);
  return sums;
}

void TokenTable::add_count(Part part, std::int64_t tokens) {
  Count count;
  count.spot = spot(part, tokens);
  count.sums = at(count.spot);
  Counts& counts = counts_[std::size_t(part)];
  if (std::size_t(tokens) >= counts.index.size()) counts.index.resize(std::size_t(tokens) + 1, -1);
  counts.index[std::size_t(tokens)] = std::int32_t(counts.met.size());
  counts.met.push_back(count);
}

// Turns counts by number of tokens into steps for which each grid point stands. Nodes come in a fixed order, whenever they were made, so
// that sums do not depend on which points used the table before.
void TokenTable::weigh() {
  if (order_.size() != nodes_.size()) {
    order_.clear();
    for (const Counts& counts : counts_) {
      std::ranges::copy_if(counts.node, std::back_inserter(order_),
                           [](std::int32_t index) { return index >= 0; });
    }
  }
  for (Node& node : nodes_) node.weight = node.steps;
  for (const Counts& counts : counts_) {
    for (const std::int32_t index : counts.index) {
      if (index < 0) continue;
      const Count& count = counts.met[std::size_t(index)];
      for (std::size_t p = 0; p < count.steps.size(); ++p) {
        const Spot& spot = count.spot;
        nodes_[std::size_t(spot.low)].weight[p] += count.steps[p] * (1 - spot.share);
        nodes_[std::size_t(spot.high)].weight[p] += count.steps[p] * spot.share;
      }
    }
  }
}

void TokenTable::report(Phase phase, Breakdown& rows) const {
  for (const std::int32_t index : order_) {
    const Node& node = nodes_[std::size_t(index)];
    const double weight = node.weight[std::size_t(phase)];
    if (weight <= 0) continue;
    for (std::uint32_t i = node.first_row; i < node.last_row; ++i) {
      rows.add(rows_[i], phase, weight);
    }
  }
}

}  // namespace engine

#include "engine/training/pipeline/pipeline_order.h"

#include <algorithm>
#include <cstddef>

#include "engine/training/pipeline/pipeline_dual.h"

namespace engine {
namespace {

constexpr std::int64_t kNoWeights = std::int64_t{1} << 62;

// Forward passes ahead of backward passes, and gradients of weights behind these.
struct StageLead {
  std::int64_t passes, ahead, lag;

  StageLead(const Pipeline& pipeline, std::int64_t stage)
      : passes(pipeline.chunks_per_stage() * pipeline.micro_batches),
        // The gradients of weights follow as many backward passes late as there are stages before this one: so late
        // that earlier stages get their gradients sooner, and so early that no stage holds more activations than the first.
        lag(pipeline.schedule == Schedule::zero_bubble ? stage : kNoWeights) {
    const std::int64_t after = pipeline.stages - stage - 1;
    const std::int64_t chunks_before = (pipeline.chunks_per_stage() - 1) * pipeline.stages;
    const bool in_turn = pipeline.schedule == Schedule::interleaved;
    // A pair takes as long as both its passes, so a micro-batch is back from the next stage one round later than in 1F1B; and the
    // last stage can begin with no gradient of a pass in the same pair.
    const std::int64_t lead = pipeline.side_by_side || in_turn
                                  ? 2 * after + chunks_before + (pipeline.side_by_side ? 1 : 0)
                                  : after;
    ahead = std::min(pipeline.schedule == Schedule::gpipe ? passes : lead, passes);
  }
};

// Which chunk the n-th forward or backward pass of a stage is of, and for which micro-batch: micro-batches go through the
// chunks of a stage in groups of as many as there are stages.
PassPlace place_of(const Pipeline& pipeline, std::int64_t stage, bool backward,
                   std::int64_t number) {
  const std::int64_t per_stage = pipeline.chunks_per_stage(), stages = pipeline.stages;
  if (per_stage == 1) return {stage, number};
  const std::int64_t round = stages * per_stage, within = number % round;
  std::int64_t chunk = within / stages;
  if (backward) chunk = per_stage - 1 - chunk;
  return {chunk * stages + stage, number / round * stages + within % stages};
}

std::vector<StagePass> order_in_turn(const Pipeline& pipeline, std::int64_t stage) {
  const StageLead lead(pipeline, stage);
  const bool puts_off = lead.lag < kNoWeights;
  std::int64_t forward = 0, backward = 0, weights = 0;
  const auto next_forward = [&] { return place_of(pipeline, stage, false, forward++); };
  const auto next_backward = [&] { return place_of(pipeline, stage, true, backward++); };
  std::vector<StagePass> order;
  while (backward < lead.passes || (puts_off && weights < lead.passes)) {
    const bool ahead = forward >= std::min(lead.ahead, lead.passes);
    if (weights < backward - lead.lag || backward == lead.passes) {
      order.push_back({StageWork::weights, {}, place_of(pipeline, stage, true, weights++)});
    } else if (pipeline.side_by_side && ahead && forward < lead.passes) {
      order.push_back({StageWork::pair, next_forward(), next_backward()});
    } else if (forward < std::min(lead.ahead + backward + 1, lead.passes) &&
               !(pipeline.side_by_side && ahead)) {
      order.push_back({StageWork::forward, next_forward(), {}});
    } else {
      order.push_back({puts_off ? StageWork::inputs : StageWork::backward, {}, next_backward()});
    }
  }
  return order;
}

// Micro-batches of dualpipe are half of them of either way, which the later half of the stages sees the other way round.
std::vector<StagePass> order_both_ways(const Pipeline& pipeline, std::int64_t stage) {
  const DualRank rank = dual_rank(pipeline, stage);
  const std::int64_t passes = passes_of_a_way(pipeline);
  std::vector<DualPass> work;
  rank.add_opening(work);
  rank.add_rounds(0, rank.rounds(passes), work);
  rank.add_closing(work);
  const bool mirrored = rank.rank != stage, halves = pipeline.schedule == Schedule::dualpipe;
  const auto place = [&](int way, std::int64_t number) {
    const std::int64_t chunk =
        way == 0 ? rank.rank : std::int64_t(pipeline.chunks.size()) - 1 - rank.rank;
    const bool second = halves && (way == 1) != mirrored;
    return PassPlace{chunk, number + (second ? passes : 0)};
  };
  std::int64_t forward[2] = {}, backward[2] = {};
  std::size_t done = 0;
  std::vector<PassPlace> put_off;
  std::vector<StagePass> order;
  for (const DualPass& pass : work) {
    StagePass next{.work = pass.work};
    const int back_way = pass.work == StageWork::pair ? 1 - pass.way : pass.way;
    if (pass.work == StageWork::weights) {
      next.backward = put_off[done++];
    } else {
      if (pass.work == StageWork::forward || pass.work == StageWork::pair) {
        next.forward = place(pass.way, forward[pass.way]++);
      }
      if (pass.work != StageWork::forward) next.backward = place(back_way, backward[back_way]++);
      if (pass.work == StageWork::inputs) put_off.push_back(next.backward);
    }
    order.push_back(next);
  }
  return order;
}

}  // namespace

std::vector<StagePass> order_of(const Pipeline& pipeline, std::int64_t stage) {
  return is_dual(pipeline.schedule) ? order_both_ways(pipeline, stage)
                                    : order_in_turn(pipeline, stage);
}

std::int64_t passes_held(const Pipeline& pipeline, std::int64_t stage) {
  if (is_dual(pipeline.schedule)) {
    const DualRank rank = dual_rank(pipeline, stage);
    return rank.held(0) + rank.held(1);
  }
  const StageLead lead(pipeline, stage);
  // Alone, a stage takes one micro-batch through all its chunks and back before the next.
  if (pipeline.stages == 1 && !pipeline.side_by_side) return pipeline.chunks_per_stage();
  const std::int64_t put_off = lead.lag < kNoWeights ? lead.lag : 0;
  return std::min(lead.ahead + 1 + put_off, lead.passes);
}

double passes_held(const Pipeline& pipeline, std::int64_t stage, std::int64_t chunk) {
  if (is_dual(pipeline.schedule)) {
    const DualRank rank = dual_rank(pipeline, stage);
    return double(rank.held(chunk == rank.rank ? 0 : 1));
  }
  return double(passes_held(pipeline, stage)) / double(pipeline.chunks_per_stage());
}

PassCounts passes_alone(const Pipeline& pipeline, std::int64_t stage, std::int64_t chunk) {
  PassCounts counts;
  if (is_dual(pipeline.schedule)) {
    const DualRank rank = dual_rank(pipeline, stage);
    const int way = chunk == rank.rank ? 0 : 1;
    std::vector<DualPass> work;
    rank.add_opening(work);
    rank.add_rounds(0, 1, work);
    rank.add_closing(work);
    for (const DualPass& pass : work) {
      if (pass.way != way || pass.work == StageWork::pair) continue;
      if (pass.work == StageWork::forward) counts.forward += 1;
      if (pass.work == StageWork::backward || pass.work == StageWork::inputs) counts.backward += 1;
    }
    return counts;
  }
  const StageLead lead(pipeline, stage);
  for (std::int64_t i = 0; i < lead.ahead; ++i) {
    if (place_of(pipeline, stage, false, i).chunk == chunk) counts.forward += 1;
    if (place_of(pipeline, stage, true, lead.passes - 1 - i).chunk == chunk) counts.backward += 1;
  }
  return counts;
}

}  // namespace engine

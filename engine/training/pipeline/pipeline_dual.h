// Pipelines with a way down the stages and a way up (dualpipe, dualpipe_v): forward passes of one go on beside backward passes of
// the other.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/training/pipeline/pipeline_order.h"

namespace engine {

// What a stage does next. Way 0 is the one that reaches it first; of a pair, it is that of the forward pass.
struct DualPass {
  StageWork work = StageWork::forward;
  std::uint8_t way = 0;
};

// The published order (DeepSeek-V3, section 3.2.1, and its code): of one of `ranks` stages that lie between the outer end, where way 0
// begins and way 1 ends, and the turn. Each way has `passes` micro-batches, at least 2 x ranks.
struct DualRank {
  std::int64_t ranks, rank;

  // Pairs of pairs that every rank does between its opening and its closing passes.
  std::int64_t rounds(std::int64_t passes) const { return passes - 2 * ranks + rank + 1; }
  void add_opening(std::vector<DualPass>& order) const;
  void add_rounds(std::int64_t from, std::int64_t upto, std::vector<DualPass>& order) const;
  void add_closing(std::vector<DualPass>& order) const;

  // Passes that wait for their backward pass at most, for the chunk of a way.
  std::int64_t held(int way) const { return way == 0 ? 2 * ranks - rank : rank + 1; }
};

// The rank of a stage: dualpipe's stages are two by two the same, seen from either end.
DualRank dual_rank(const Pipeline& pipeline, std::int64_t stage);
std::int64_t passes_of_a_way(const Pipeline& pipeline);

// From the first pass to the end of the last one. Once all ranks stand as they stood some rounds ago, only later, what lies between
// is repeated without being followed.
Seconds time_by_ways(const Pipeline& pipeline);

}  // namespace engine

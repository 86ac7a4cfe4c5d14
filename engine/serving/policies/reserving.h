// What policies share that set room aside when they admit. Decodes and whole prompts run in one step. A prompt that no step could hold
// beside the decodes is read in pieces; otherwise it, and all requests behind it, would wait for every decode to end.
#pragma once

#include <algorithm>

#include "engine/serving/policies/batch_policy.h"

namespace engine {

inline void plan_reserving(const ReplicaView& view, StepPlan& plan) {
  plan.decodes = view.running.decoding;
  std::int64_t budget =
      std::max(view.settings().max_num_batched_tokens, view.step_tokens(plan.decodes)) -
      view.step_tokens(plan.decodes);
  const std::int64_t beside_decodes = budget;
  budget = read_on(view, budget, plan);
  std::int64_t free = view.pool.free() - view.margin();
  std::int64_t seats = view.seats - view.running.count;
  for (std::int64_t i = 0; i < view.waiting.admissible() && budget > 0 && seats > 0; ++i, --seats) {
    const std::int32_t slot = view.waiting.at(i);
    const Sequence& sequence = view.at(slot);
    const KvPool::Match hit = view.match(sequence);
    const std::int64_t reserved = tokens_set_aside(view, sequence) + view.past_end();
    const std::int64_t most = view.pool.total() * view.pool.block_size();
    const std::int64_t blocks = view.blocks_to_admit(hit, std::min(reserved, most) - view.ahead());
    const std::int64_t wanted = sequence.target - hit.tokens;
    const std::int64_t tokens = std::min(wanted, budget);
    const bool fits = tokens == wanted || wanted > beside_decodes;
    if (blocks > free || !fits) break;
    plan.admissions.push_back(
        {.slot = slot, .tokens = tokens, .reserved_tokens = reserved, .hit = hit});
    free -= blocks;
    budget -= tokens;
  }
  plan.steady = steadiness(view, plan);
}

}  // namespace engine

// vLLM's V1 scheduler: one token budget. Running sequences come first, in the order of admission, with prompts in chunks; then the
// queue, first come first served, until tokens, seats or blocks run out. A sequence that gets no block preempts the newest one, and a
// step that preempted admits no request.
// Source: vllm/v1/core/sched/scheduler.py (2025).
#include "engine/serving/policies/batch_policy.h"

namespace engine {

void plan_vllm_v1(const ReplicaView& view, StepPlan& plan) {
  const ServingSettings& settings = view.settings();
  const std::int64_t most_chunk = settings.longest_piece();
  std::int64_t budget = plan_running(view, settings.max_num_batched_tokens, most_chunk, plan);
  if (!plan.preempted.empty()) return;

  std::int64_t free = blocks_left(view, plan) - view.margin();
  std::int64_t seats = view.seats - view.running.count;
  for (std::int64_t i = 0; i < view.waiting.admissible() && budget > 0 && seats > 0; ++i, --seats) {
    const std::int32_t slot = view.waiting.at(i);
    const Sequence& sequence = view.at(slot);
    const KvPool::Match hit = view.match(sequence);
    const std::int64_t tokens = std::min({sequence.target - hit.tokens, most_chunk, budget});
    // Lanes cannot preempt one another: each is sure to get its prompts read, or two of them could
    // take turns in giving up.
    const std::int64_t read = view.common.lanes > 1 ? sequence.target : hit.tokens + tokens;
    const std::int64_t blocks = view.blocks_to_admit(hit, read);
    if (blocks > free) break;
    plan.admissions.push_back(
        {.slot = slot, .tokens = tokens, .whole_prompt = view.common.lanes > 1, .hit = hit});
    free -= blocks;
    budget -= tokens;
  }
  plan.steady = steadiness(view, plan);
}

}  // namespace engine

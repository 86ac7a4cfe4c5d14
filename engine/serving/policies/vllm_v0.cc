// vLLM before its rewrite: prompts first. While a request of the queue can be admitted, a step reads whole prompts and nothing else;
// otherwise all sequences decode. A sequence that gets no block preempts the newest one.
// Source: vllm/core/scheduler.py, releases 0.2 to 0.6, without chunked prefill.
#include "engine/serving/policies/batch_policy.h"

namespace engine {

void plan_vllm_v0(const ReplicaView& view, StepPlan& plan) {
  std::int64_t budget = view.settings().max_num_batched_tokens;
  std::int64_t free = view.pool.free() - view.margin();
  std::int64_t seats = view.seats - view.running.count;
  for (std::int64_t i = 0; i < view.waiting.admissible() && seats > 0; ++i, --seats) {
    const std::int32_t slot = view.waiting.at(i);
    const Sequence& sequence = view.at(slot);
    const KvPool::Match hit = view.match(sequence);
    const std::int64_t tokens = sequence.target - hit.tokens;
    // A prompt longer than the budget is read alone: the engine sets its budget to avoid that.
    if (tokens > budget && !plan.admissions.empty()) break;
    const std::int64_t blocks = view.blocks_to_admit(hit, sequence.target);
    if (blocks > free) break;
    plan.admissions.push_back({.slot = slot, .tokens = tokens, .whole_prompt = true, .hit = hit});
    free -= blocks;
    budget -= tokens;
    if (budget <= 0) break;
  }
  if (!plan.admissions.empty()) return;
  plan_running(view, view.step_tokens(view.running.count), 1, plan);
  plan.steady = steadiness(view, plan);
}

}  // namespace engine

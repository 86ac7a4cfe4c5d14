// Sarathi-Serve: every step has at most `chunk` tokens. All decodes come first, so no prompt ever
// stalls them; then prompts already begun, then new ones fill what is left. Blocks for a whole prompt
// are taken when it is admitted. Source: arXiv:2403.02310, algorithm 3.
#include "engine/serving/policies/batch_policy.h"

namespace engine {

void plan_sarathi(const ReplicaView& view, StepPlan& plan) {
  // Prompts hold their blocks already: only decodes can run out of them.
  const std::int64_t all = std::max(view.settings().chunk, view.step_tokens(view.running.count));
  if (view.running.next_blocks > view.pool.free()) {
    plan_running(view, all, 1, plan);
    // Prompts that were being read when blocks ran out are read on in the next step.
    plan.chunks.clear();
    if (plan.decodes > 0 || !plan.preempted.empty()) return;
  }
  plan.decodes = view.running.decoding;
  std::int64_t budget = read_on(view, view.settings().chunk - view.step_tokens(plan.decodes), plan);
  std::int64_t free = blocks_left(view, plan) - view.margin();
  std::int64_t seats = view.seats - view.running.count;
  for (std::int64_t i = 0; i < view.waiting.admissible() && budget > 0 && seats > 0; ++i, --seats) {
    const std::int32_t slot = view.waiting.at(i);
    const Sequence& sequence = view.at(slot);
    const KvPool::Match hit = view.match(sequence);
    const std::int64_t blocks = view.blocks_to_admit(hit, sequence.target);
    if (blocks > free) break;
    const std::int64_t tokens = std::min(sequence.target - hit.tokens, budget);
    plan.admissions.push_back({.slot = slot, .tokens = tokens, .whole_prompt = true, .hit = hit});
    free -= blocks;
    budget -= tokens;
  }
  plan.steady = steadiness(view, plan);
}

}  // namespace engine

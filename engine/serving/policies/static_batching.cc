// Static batching: a batch is formed from the waiting requests and runs until its last member is done; only then the next one is
// formed. Room for all outputs is set aside. This is what servers did before Orca.
#include "engine/serving/policies/batch_policy.h"

namespace engine {

void plan_static(const ReplicaView& view, StepPlan& plan) {
  // Prompts of the batch are read first, all of them, in as many steps as they need.
  std::int64_t budget = read_on(view, view.settings().max_num_batched_tokens, plan);
  if (!plan.chunks.empty()) return;
  if (view.running.count > 0) {
    plan.decodes = view.running.decoding;
    plan.steady = Steady::until_completion;
    return;
  }
  std::int64_t free = view.pool.free();
  std::int64_t seats = view.seats;
  for (std::int64_t i = 0; i < view.waiting.admissible() && seats > 0; ++i, --seats) {
    const std::int32_t slot = view.waiting.at(i);
    const Sequence& sequence = view.at(slot);
    const KvPool::Match hit = view.match(sequence);
    const std::int64_t reserved = tokens_set_aside(view, sequence) + view.past_end();
    const std::int64_t most = view.pool.total() * view.pool.block_size();
    const std::int64_t blocks = view.blocks_to_admit(hit, std::min(reserved, most) - view.ahead());
    if (blocks > free) break;
    const std::int64_t tokens =
        std::min(sequence.target - hit.tokens, std::max<std::int64_t>(budget, 0));
    plan.admissions.push_back(
        {.slot = slot, .tokens = tokens, .reserved_tokens = reserved, .hit = hit});
    free -= blocks;
    budget -= tokens;
  }
}

}  // namespace engine

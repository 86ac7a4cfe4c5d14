#include "engine/serving/policies/batch_policy.h"

namespace engine {
namespace {

std::int64_t wanted_chunk(const Sequence& sequence, std::int64_t most_chunk) {
  return std::min(sequence.target - sequence.computed, most_chunk);
}

// The careful way, for steps in which tokens or blocks do not suffice for everyone: one sequence
// after another takes its tokens and blocks; the newest ones make room for those before them.
std::int64_t plan_in_order(const ReplicaView& view, std::int64_t budget, std::int64_t most_chunk,
                           StepPlan& plan) {
  std::int64_t free = view.pool.free();
  std::int32_t newest = view.running.last;
  std::vector<KvHolding::Part> gone;
  const auto preempt_newest = [&] {
    const Sequence& victim = view.at(newest);
    free += view.pool.freed_by(victim.kv, view.blocks_held(victim), gone);
    plan.preempted.push_back(newest);
    newest = victim.before;
  };
  for (std::int32_t slot = view.running.first; slot >= 0 && budget > 0;) {
    const Sequence& sequence = view.at(slot);
    const std::int64_t tokens = sequence.decoding
                                    ? view.step_tokens(1)
                                    : std::min(wanted_chunk(sequence, most_chunk), budget);
    const std::int64_t blocks =
        sequence.decoding ? view.blocks_to_decode(sequence) : view.blocks_to_add(sequence, tokens);
    while (blocks > free && newest != slot) preempt_newest();
    if (blocks > free) {
      preempt_newest();  // this is the sequence itself, since no newer one is left
      break;
    }
    free -= blocks;
    budget -= tokens;
    if (sequence.decoding) {
      ++plan.decodes;
    } else {
      plan.chunks.push_back({slot, tokens});
    }
    if (slot == newest) break;
    slot = sequence.after;
  }
  return budget;
}

// Blocks that decodes take may be cache that waiting requests count on. That may change which request is first, where the order of the
// queue depends on the cache. And where the first one is read in pieces, less cache means a shorter first piece, which needs fewer
// blocks. It never needs fewer than one piece takes: where even that many are not free, it waits whatever it loses.
[[gnu::noinline]] bool cache_matters(const ReplicaView& view) {
  const ServingSettings& settings = view.settings();
  if (settings.ordering == Ordering::longest_prefix) return true;
  const std::int64_t piece = std::min(
      settings.step_budget() - view.step_tokens(view.running.decoding), settings.longest_piece());
  const Sequence& head = view.at(view.waiting.at(0));
  if (head.target <= piece) return false;
  const KvPool::Match hit = view.match(head);
  if (hit.may_shrink) return true;
  const std::int64_t free = view.pool.free() - view.running.next_blocks;
  return hit.idle > 0 && view.pool.blocks_for(piece) <= free;
}

}  // namespace

std::int64_t plan_running(const ReplicaView& view, std::int64_t budget, std::int64_t most_chunk,
                          StepPlan& plan) {
  std::int64_t tokens = view.step_tokens(view.running.decoding);
  std::int64_t blocks = view.running.next_blocks;
  for (const std::int32_t slot : view.running.prefilling) {
    const Sequence& sequence = view.at(slot);
    const std::int64_t chunk = wanted_chunk(sequence, most_chunk);
    tokens += chunk;
    blocks += view.blocks_to_add(sequence, chunk);
  }
  if (tokens > budget || blocks > view.pool.free()) {
    return plan_in_order(view, budget, most_chunk, plan);
  }
  plan.decodes = view.running.decoding;
  for (const std::int32_t slot : view.running.prefilling) {
    plan.chunks.push_back({slot, wanted_chunk(view.at(slot), most_chunk)});
  }
  return budget - tokens;
}

std::int64_t read_on(const ReplicaView& view, std::int64_t budget, StepPlan& plan) {
  for (const std::int32_t slot : view.running.prefilling) {
    if (budget <= 0) break;
    const Sequence& sequence = view.at(slot);
    const std::int64_t tokens = std::min(sequence.target - sequence.computed, budget);
    plan.chunks.push_back({slot, tokens});
    budget -= tokens;
  }
  return budget;
}

std::int64_t tokens_set_aside(const ReplicaView& view, const Sequence& sequence) {
  const std::int64_t answered =
      sequence.prompt + std::max(view.settings().max_output, sequence.output);
  const bool longest = policy_of(view.settings().policy).takes_longest();
  return longest ? std::max(view.common.longest, answered) : answered;
}

std::int64_t blocks_left(const ReplicaView& view, const StepPlan& plan) {
  std::int64_t left = view.pool.free();
  // All decode, or few enough are left out that counting them all is only cautious.
  if (plan.decodes > 0) left -= view.running.next_blocks;
  for (const Chunk& chunk : plan.chunks) {
    left -= view.blocks_to_add(view.at(chunk.slot), chunk.tokens);
  }
  return left;
}

Steady steady_behind_queue(const ReplicaView& view) {
  const bool first_come = view.settings().ordering == Ordering::fcfs;
  return first_come ? Steady::until_completion : Steady::until_arrival;
}

Steady steadiness(const ReplicaView& view, const StepPlan& plan) {
  const bool only_decodes = plan.decodes > 0 && plan.decodes == view.running.count &&
                            plan.chunks.empty() && plan.admissions.empty() &&
                            plan.preempted.empty();
  if (!only_decodes) return Steady::no;
  if (view.waiting.empty()) return Steady::until_arrival;
  if (view.pool.caches_prefixes() && cache_matters(view)) return Steady::no;
  return steady_behind_queue(view);
}

}  // namespace engine

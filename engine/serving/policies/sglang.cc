// SGLang: prompts first, in chunks, on their own; otherwise everyone decodes. Admission leaves room for
// a share of the outputs still to come of those that decode, and for all of those whose prompts are
// read. When decodes run out of blocks, those that have generated least are retracted and queue up
// again. With `ordering: longest_prefix` the queue is sorted by what the radix cache holds. Source:
// python/sglang/srt/managers/schedule_policy.py, schedule_batch.py.
#include "engine/serving/policies/batch_policy.h"

namespace engine {
namespace {

// Outputs of newcomers count up to so many tokens (CLIP_MAX_NEW_TOKENS).
constexpr std::int64_t kMostExpected = 4096;

// KV tokens of a sequence whose prompt is read, and all that it may write.
double whole(const Sequence& sequence) {
  return double(sequence.target +
                std::min<std::int64_t>(sequence.output - sequence.generated, kMostExpected));
}

std::int64_t made(const ReplicaView& view, const Sequence& sequence) {
  return sequence.output - (sequence.finish_token - view.running.tokens);
}

// The decode that has generated least; among equals the longest prompt, then the newest. Not one
// already chosen.
std::int32_t next_victim(const ReplicaView& view, const std::vector<std::int32_t>& chosen) {
  std::int32_t best = -1;
  for (std::int32_t slot = view.running.first; slot >= 0; slot = view.at(slot).after) {
    const Sequence& sequence = view.at(slot);
    if (!sequence.decoding) continue;
    if (std::find(chosen.begin(), chosen.end(), slot) != chosen.end()) continue;
    if (best >= 0) {
      const Sequence& other = view.at(best);
      const std::int64_t here = made(view, sequence), there = made(view, other);
      if (here > there || (here == there && sequence.prompt < other.prompt)) continue;
    }
    best = slot;
  }
  return best;
}

void retract(const ReplicaView& view, StepPlan& plan) {
  std::int64_t free = view.pool.free();
  std::int64_t needed = view.running.next_blocks;
  // The last one always fits, unless the batches of other lanes hold the rest.
  const std::int64_t kept = view.others_running ? 0 : 1;
  while (needed > free && std::int64_t(plan.preempted.size()) + kept < view.running.decoding) {
    const std::int32_t slot = next_victim(view, plan.preempted);
    const Sequence& victim = view.at(slot);
    needed -= view.blocks_to_decode(victim);
    free += view.pool.freed_by(victim.kv, view.blocks_held(victim));
    plan.preempted.push_back(slot);
  }
}

}  // namespace

void plan_sglang(const ReplicaView& view, StepPlan& plan) {
  const ServingSettings& settings = view.settings();
  std::int64_t budget = read_on(view, settings.chunk, plan);
  const double ratio = settings.new_token_ratio;
  std::int64_t free = view.pool.free() - view.margin();
  // In tokens, not blocks: what is held and what is to come never shrinks together as decodes go on,
  // so whoever does not fit now does not fit before something finishes.
  double expected = double(view.decode_tokens()) + ratio * double(view.outputs_to_come());
  for (const std::int32_t slot : view.running.prefilling) expected += whole(view.at(slot));
  const double room = double((view.pool.total() - view.margin()) * view.pool.block_size());
  std::int64_t seats = view.seats - view.running.count;
  for (std::int64_t i = 0; i < view.waiting.admissible() && budget > 0 && seats > 0; ++i, --seats) {
    const std::int32_t slot = view.waiting.at(i);
    const Sequence& sequence = view.at(slot);
    const KvPool::Match hit = view.match(sequence);
    const bool alone = view.idle() && plan.admissions.empty();
    const std::int64_t blocks = view.blocks_to_admit(hit, sequence.target);
    expected += whole(sequence);
    if (blocks > free || (expected > room && !alone)) break;
    const std::int64_t tokens = std::min(sequence.target - hit.tokens, budget);
    plan.admissions.push_back({.slot = slot, .tokens = tokens, .whole_prompt = true, .hit = hit});
    free -= blocks;
    budget -= tokens;
  }
  if (!plan.chunks.empty() || !plan.admissions.empty()) return;

  if (view.running.next_blocks > view.pool.free()) {
    retract(view, plan);
    plan.retracted_last = true;
    plan.decodes = view.running.decoding - std::int64_t(plan.preempted.size());
    return;
  }
  plan.decodes = view.running.decoding;
  plan.steady = steadiness(view, plan);
}

}  // namespace engine

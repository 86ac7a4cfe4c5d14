// SGLang: prompts first, in chunks, in steps of their own; otherwise all sequences decode. Admission leaves room for a share of the
// outputs still to come of sequences that decode, and for all outputs of those whose prompts are being read. That share falls with every
// decode step; after a retraction it is set by how much of their outputs the decoding sequences have made; and it begins anew when the
// replica was empty. A request that did not fit is tried again one step after a sequence has left. When decodes run out of blocks,
// sequences that have generated least are retracted and queue up again. With
// `ordering: longest_prefix` the queue is sorted by what the radix cache holds. Source: python/sglang/srt/managers/schedule_policy.py,
// schedule_batch.py, scheduler.py (new_token_ratio, batch_is_full).
#include "engine/serving/policies/batch_policy.h"

namespace engine {
namespace {

// Tokens up to which the output of a new request counts (CLIP_MAX_NEW_TOKENS).
constexpr std::int64_t kMostExpected = 4096;
// The share of outputs for which room is left falls to this part of its first value (SGLANG_MIN_NEW_TOKEN_RATIO_FACTOR), over this many
// decode steps (SGLANG_NEW_TOKEN_RATIO_DECAY_STEPS).
constexpr double kLeastOfRatio = 0.14, kStepsToLeast = 600;
// Tokens that each sequence left after a retraction is expected to make (SGLANG_RETRACT_DECODE_STEPS).
constexpr double kStepsAfterRetraction = 20;

double ratio_now(const ReplicaView& view) {
  const double first = view.settings().new_token_ratio, least = kLeastOfRatio * first;
  const PolicyMemory& memory = view.running.remembered;
  const double from = memory.ratio < 0 ? first : memory.ratio;
  const double steps = double(std::max<std::int64_t>(0, view.running.step - memory.since));
  return std::max(least, from - steps * (first - least) / kStepsToLeast);
}

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

// Of their outputs, what those that stay have made, with that of the next steps.
double ratio_after_retraction(const ReplicaView& view, const StepPlan& plan) {
  double tokens = 0, outputs = 1;
  for (std::int32_t slot = view.running.first; slot >= 0; slot = view.at(slot).after) {
    const Sequence& sequence = view.at(slot);
    const auto& gone = plan.preempted;
    if (!sequence.decoding || std::find(gone.begin(), gone.end(), slot) != gone.end()) continue;
    tokens += double(made(view, sequence)) + kStepsAfterRetraction;
    outputs += double(sequence.output);
  }
  return std::min(1.0, tokens / outputs);
}

void retract(const ReplicaView& view, StepPlan& plan) {
  std::int64_t free = view.pool.free();
  std::int64_t needed = view.running.next_blocks;
  // The last one always fits, unless the batches of other lanes hold the rest.
  const std::int64_t kept = view.others_running ? 0 : 1;
  std::vector<KvHolding::Part> gone;
  while (needed > free && std::int64_t(plan.preempted.size()) + kept < view.running.decoding) {
    const std::int32_t slot = next_victim(view, plan.preempted);
    const Sequence& victim = view.at(slot);
    needed -= view.blocks_to_decode(victim);
    free += view.pool.freed_by(victim.kv, view.blocks_held(victim), gone);
    plan.preempted.push_back(slot);
  }
}

// Admits the requests that fit. False where one does not.
bool admit(const ReplicaView& view, std::int64_t budget, StepPlan& plan) {
  if (view.waiting.admissible() == 0 || budget <= 0) return true;
  std::int64_t free = view.pool.free() - view.margin();
  // In tokens, not blocks.
  double expected = double(view.decode_tokens()) + ratio_now(view) * double(view.outputs_to_come());
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
    if (blocks > free || (expected > room && !alone)) return false;
    const std::int64_t tokens = std::min(sequence.target - hit.tokens, budget);
    plan.admissions.push_back({.slot = slot, .tokens = tokens, .whole_prompt = true, .hit = hit});
    free -= blocks;
    budget -= tokens;
  }
  return true;
}

}  // namespace

void plan_sglang(const ReplicaView& view, StepPlan& plan) {
  const RunningSet& running = view.running;
  PolicyMemory memory = running.remembered;
  const std::int64_t budget = read_on(view, view.settings().chunk, plan);
  // No request is tried while the decoding sequences fill the cache, nor in the step in which one of them is found to have left.
  const bool full = memory.full_after >= 0 && running.prefilling.empty() && running.decoding > 0;
  const bool notices = full && running.departures > memory.full_after && !view.waiting.empty();
  if (!full) memory.full_after = admit(view, budget, plan) ? -1 : running.departures;
  if (notices) memory.full_after = -1;
  if (memory.full_after != running.remembered.full_after) plan.remember(memory);
  if (!plan.chunks.empty() || !plan.admissions.empty()) return;

  if (running.next_blocks > view.pool.free()) {
    retract(view, plan);
    plan.retracted_last = true;
    plan.decodes = running.decoding - std::int64_t(plan.preempted.size());
    plan.remember({.ratio = ratio_after_retraction(view, plan),
                   .since = running.step + (plan.decodes > 0 ? 1 : 0)});
    return;
  }
  plan.decodes = running.decoding;
  if (notices) return;
  const bool nobody_is_tried = memory.full_after >= 0 && !view.waiting.empty();
  plan.steady = nobody_is_tried ? steady_behind_queue(view) : steadiness(view, plan);
}

}  // namespace engine

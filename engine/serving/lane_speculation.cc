// Speculation that varies from step to step: how many tokens are proposed, and how many of them hold.
#include <algorithm>
#include <utility>

#include "engine/base/random.h"
#include "engine/serving/lane.h"

namespace engine {

void Lane::pick_length() {
  change_length(replica_->table->pick(
      {.sequences = running().decoding, .context = sequences_.set.contexts()}));
}

// The plan has left room for as many as were picked before: with fewer some of it is not used.
void Lane::pick_beside_prompts() {
  change_length(replica_->table->pick_beside_prompts(
      {.sequences = running().decoding, .context = sequences_.set.contexts()}, length_));
}

void Lane::change_length(int picked) {
  if (picked == length_) return;
  length_ = picked;
  sequences_.change_pace(replica_->table->length(picked).pace);
  stretch_.pace = sequences_.set.pace();
}

double Lane::draft_reading() {
  if (!replica_->draft_reads_late || length_ <= 0 || !sequences_.unread_by_draft) return 0;
  sequences_.unread_by_draft = false;
  BatchShape unread;
  sequences_.each_decode([&](Sequence& sequence) {
    if (std::exchange(sequence.drafted, true)) return;
    // A prefix that was in the cache is known to the draft as well.
    const std::int64_t context = sequences_.set.context(sequence);
    const std::int64_t known = std::min(sequence.cached, context - 1);
    add_prefill(unread, 1, context - known, known, replica_->window);
  });
  return unread.prefill_tokens > 0 ? replica_->table->read_by_draft(unread) : 0;
}

// A step in which nobody takes part.
void Lane::wait_for_draft(double now, double seconds) {
  ReplicaState& replica = *replica_;
  work_ = Work::step;
  start_ = now;
  end_ = now + seconds;
  left_ = 0;
  step_decodes_ = 0;
  chunks_.clear();
  replica.stats->step_began(now);
  const double held = sequences_.set.contexts() - double(running().decoding) +
                      double(sequences_.set.prompt_tokens());
  replica.sums->ran(0, seconds, 0, tokens_held(held * seconds, seconds));
}

std::int64_t Lane::tokens_of(const Sequence& sequence) const {
  const SequencePaces& paces = *replica_->own_paces;
  const std::int64_t made = sequence.output - (sequence.finish_token - running().tokens);
  const std::int64_t positions = running().next_tokens - 1;
  if (!paces.drawn) return paces.mean_tokens(sequence.service_class, positions, made);
  const double luck = uniform(mixed_seed(replica_->seed, std::uint64_t(sequence.number)),
                              Stream::acceptance, std::uint64_t(made));
  return paces.drawn_tokens(sequence.service_class, positions, luck);
}

std::int64_t Lane::draw(std::int64_t decodes) {
  std::int64_t blocks = 0;
  const std::int64_t all = running().next_tokens;
  for (std::int32_t slot = running().first; decodes > 0; slot = at(slot).after) {
    const Sequence& sequence = at(slot);
    if (!sequence.decoding) continue;
    --decodes;
    const std::int64_t tokens = tokens_of(sequence);
    if (replica_->own_paces->by_class) {
      replica_->sums->by_class[std::size_t(sequence.service_class)].verified(tokens);
    }
    if (tokens == all) continue;
    const ReplicaView& view = sequences_.blocks();
    blocks += view.blocks_to_add(sequence, all) - view.blocks_to_add(sequence, tokens);
    step_tokens_ -= all - tokens;
    sequences_.set.hold_back(slot, all - tokens);
  }
  return blocks;
}

void Lane::count_verified(double sequence_steps, double made) {
  PoolSums& sums = *replica_->sums;
  sums.verifications += sequence_steps;
  sums.verified_tokens += made;
  sums.proposed_tokens += sequence_steps * double(sequences_.set.pace().queries - 1);
}

}  // namespace engine

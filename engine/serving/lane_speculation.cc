// Speculation that varies from step to step: how many tokens are proposed, and how many of them hold.
#include "engine/base/random.h"
#include "engine/serving/lane.h"

namespace engine {

void Lane::pick_length() {
  StepTable& table = *replica_->table;
  const int picked =
      table.pick({.sequences = running().decoding, .context = sequences_.set.contexts()});
  if (picked == length_) return;
  length_ = picked;
  const Pace& pace = table.length(picked).pace;
  sequences_.change_pace(pace);
  stretch_.pace = sequences_.set.pace();
}

std::int64_t Lane::drawn_tokens(const Sequence& sequence) const {
  const std::int64_t made = sequence.output - (sequence.finish_token - running().tokens);
  const double luck = uniform(mixed_seed(replica_->seed, std::uint64_t(sequence.number)),
                              Stream::acceptance, std::uint64_t(made));
  std::int64_t tokens = 1;
  while (tokens < running().next_tokens && luck < replica_->drawn[std::size_t(tokens - 1)]) {
    ++tokens;
  }
  return tokens;
}

std::int64_t Lane::draw(std::int64_t decodes) {
  std::int64_t blocks = 0;
  const std::int64_t all = running().next_tokens;
  for (std::int32_t slot = running().first; decodes > 0; slot = at(slot).after) {
    const Sequence& sequence = at(slot);
    if (!sequence.decoding) continue;
    --decodes;
    const std::int64_t tokens = drawn_tokens(sequence);
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

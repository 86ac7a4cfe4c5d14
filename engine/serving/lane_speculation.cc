// Speculation that varies from step to step: how many tokens are proposed, and how many of them hold; and whom it holds up.
#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/serving/lane.h"

namespace engine {

// Where the draft's reading of prompts does not pay, nothing is proposed.
void Lane::pick_length() {
  const Decodes decodes{.sequences = running().decoding, .context = sequences_.set.contexts()};
  StepTable& table = *replica_->table;
  if (replica_->late_reading == nullptr) return change_length(table.pick(decodes));
  if (!sequences_.investment.begun()) begin_investment();
  const bool proposes = sequences_.investment.pays();
  const DraftLengths::Saving& saving = table.saving(decodes);
  saves_ = proposes ? saving.proposing : saving.otherwise;
  const int picked = table.pick(decodes);
  const double made = table.length(picked).expected;
  sequences_.investment.begin_work(proposes ? made - 1 : 1 - 1 / made);
  change_length(proposes ? picked : 0);
}

// The plan has left room for as many as were picked before: with fewer some of it is not used.
void Lane::pick_beside_prompts() {
  const Decodes decodes{.sequences = running().decoding, .context = sequences_.set.contexts()};
  StepTable& table = *replica_->table;
  if (length_ > 0) change_length(table.pick_beside_prompts(decodes, length_));
  if (replica_->late_reading == nullptr) return;
  const DraftLengths::Saving& saving = table.saving_beside_prompts(decodes);
  saves_ = sequences_.investment.pays() ? saving.proposing : saving.otherwise;
}

// As many as are inside and have room decode together, halfway through their answers.
void Lane::begin_investment() {
  const ReplicaState& replica = *replica_;
  const LateReading& typical = *replica.late_reading;
  const double room = double(replica.pool.total() * replica.pool.block_size());
  const double fit =
      std::min(room / (typical.prompt + typical.output), double(replica.settings->max_num_seqs));
  const double together =
      std::max(1.0, std::min(double(replica.outstanding), fit) / double(replica.lanes));
  const DraftLengths::Saving& saving = replica.table->saving(
      {.sequences = std::int64_t(together),
       .context = std::floor(together) * (typical.prompt + typical.output / 2)});
  // As many as come while each of them makes a token are read together.
  const double coming = std::max(1.0, together / typical.output);
  sequences_.investment.begin(1e-12 * double(saving.otherwise) * typical.output / together,
                              std::max(typical.least / coming, typical.per_token * typical.prompt));
}

void Lane::change_length(int picked) {
  if (picked == length_) return;
  length_ = picked;
  sequences_.change_pace(replica_->table->length(picked).pace);
  stretch_.pace = sequences_.set.pace();
}

double Lane::late_draft_reading() {
  if (length_ <= 0 || !sequences_.unread_by_draft) return 0;
  sequences_.unread_by_draft = false;
  BatchShape unread;
  sequences_.each_decode([&](Sequence& sequence) {
    if (std::exchange(sequence.drafted, true)) return;
    const std::int64_t tokens = sequences_.unread_tokens(sequence);
    add_prefill(unread, 1, tokens, sequences_.set.context(sequence) - tokens, replica_->window);
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

void Lane::take_stage(double now) {
  ReplicaState& replica = *replica_;
  const double drafting = work_ == Work::stretch
                              ? stretch_.line.proposals(stretch_.context, stretch_.window)
                              : replica.table->drafting();
  replica.stage_free =
      now + stage_seconds(replica.draft_place, double(replica.lanes), end_ - now, drafting);
}

// The first so many of those that decode: what each makes of its step.
void Lane::list_own_steps(std::int64_t decodes) {
  const SequencePaces& paces = *replica_->own_paces;
  const std::int64_t positions = running().next_tokens - 1, lane_tokens = running().tokens;
  own_steps_.resize(std::size_t(decodes));
  draws_.resize(paces.drawn ? std::size_t(decodes) : 0);
  Sequence* const sequences = replica_->sequences.data();
  std::int32_t slot = running().first;
  for (std::size_t i = 0; i < own_steps_.size();) {
    const Sequence& sequence = sequences[slot];
    const std::int32_t listed = std::exchange(slot, sequence.after);
    if (!sequence.decoding) continue;
    const std::int64_t made = sequence.output - (sequence.finish_token - lane_tokens);
    own_steps_[i].slot = listed;
    if (paces.drawn) {
      draws_.owner[i] = std::uint64_t(sequence.number);
      draws_.n[i] = std::uint64_t(made);
    } else {
      own_steps_[i].tokens =
          std::int32_t(paces.of(sequence.service_class).mean_tokens(positions, made));
    }
    ++i;
  }
}

// What holds of each by what it drew.
void Lane::draw_own_steps() {
  const SequencePaces& paces = *replica_->own_paces;
  const std::int64_t positions = running().next_tokens - 1;
  engine::draw(replica_->seed, Stream::acceptance, draws_);
  if (!paces.by_class) {
    const SequencePaces::OfClass& all = paces.of(RequestClass::normal);
    for (std::size_t i = 0; i < draws_.size(); ++i) {
      own_steps_[i].tokens = all.drawn_tokens(positions, draws_.u[i]);
    }
    return;
  }
  for (std::size_t i = 0; i < draws_.size(); ++i) {
    const RequestClass service_class = at(own_steps_[i].slot).service_class;
    own_steps_[i].tokens = paces.of(service_class).drawn_tokens(positions, draws_.u[i]);
  }
}

std::int64_t Lane::draw(std::int64_t decodes) {
  const SequencePaces& paces = *replica_->own_paces;
  list_own_steps(decodes);
  if (paces.drawn) draw_own_steps();
  std::int64_t tokens = 0;
  for (const DecodeSet::OwnStep& step : own_steps_) tokens += step.tokens;
  step_tokens_ = tokens;
  if (paces.by_class) count_by_class();
  return sequences_.set.step_apart(own_steps_, sequences_.blocks());
}

void Lane::count_by_class() {
  for (const DecodeSet::OwnStep& step : own_steps_) {
    const auto service_class = std::size_t(at(step.slot).service_class);
    replica_->sums->by_class[service_class].verified(step.tokens);
  }
}

void Lane::count_verified(std::int64_t steps, double sequences, double made) {
  PoolSums& sums = *replica_->sums;
  const double sequence_steps = double(steps) * sequences;
  sequences_.investment.save(steps * saves_);
  sums.verifications += sequence_steps;
  sums.verified_tokens += made;
  sums.proposed_tokens += sequence_steps * double(sequences_.set.pace().queries - 1);
}

}  // namespace engine

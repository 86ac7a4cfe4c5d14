// Speculation that varies from step to step: how many tokens are proposed, and how many of them hold; and whom it holds up.
#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "engine/serving/lane/lane.h"

namespace engine {

Decodes Lane::picked_for() const {
  std::int64_t batches = 1;
  if (replica_->common->lanes > 1) {
    const std::span<const Lane> lanes(replica_->first_lane, std::size_t(replica_->common->lanes));
    batches =
        std::ranges::count_if(lanes, [](const Lane& lane) { return lane.running().count > 0; });
  }
  return {
      .sequences = running().decoding, .context = sequences_.set.contexts(), .batches = batches};
}

// Where the draft's reading of prompts does not pay, nothing is proposed.
void Lane::pick_length() {
  const Decodes decodes = picked_for();
  StepTable& table = *replica_->common->table;
  if (replica_->common->late_reading == nullptr) return change_length(table.pick(decodes));
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
  const Decodes decodes = picked_for();
  StepTable& table = *replica_->common->table;
  if (length_ > 0) change_length(table.pick_beside_prompts(decodes, length_));
  if (replica_->common->late_reading == nullptr) return;
  const DraftLengths::Saving& saving = table.saving_beside_prompts(decodes);
  saves_ = sequences_.investment.pays() ? saving.proposing : saving.otherwise;
}

// As many as are inside and have room decode together, halfway through their answers.
void Lane::begin_investment() {
  const ReplicaState& replica = *replica_;
  const PoolConstants& common = *replica.common;
  const LateReading& typical = *common.late_reading;
  const double room = double(replica.pool.total() * replica.pool.block_size());
  const double fit = std::min(room / (typical.prompt + typical.output), double(common.seats));
  const double together =
      std::max(1.0, std::min(double(replica.outstanding), fit) / double(common.lanes));
  const DraftLengths::Saving& saving = common.table->saving(
      {.sequences = std::int64_t(together),
       .context = std::floor(together) * (typical.prompt + typical.output / 2),
       .batches = std::min(common.lanes, std::max<std::int64_t>(1, replica.outstanding))});
  // As many as come while each of them makes a token are read together.
  const double coming = std::max(1.0, together / typical.output);
  sequences_.investment.begin(1e-12 * double(saving.otherwise) * typical.output / together,
                              std::max(typical.least / coming, typical.per_token * typical.prompt));
}

void Lane::change_length(int picked) {
  if (picked == length_) return;
  length_ = picked;
  steady_ = Steady::no;  // a step may not have tokens for all of them any more, or may again
  most_steady_ = 0;
  sequences_.change_pace(replica_->common->table->length(picked).pace);
  stretch_.keep_pace(sequences_.set.pace());
}

double Lane::late_draft_reading() {
  if (length_ <= 0 || !sequences_.unread_by_draft) return 0;
  sequences_.unread_by_draft = false;
  BatchShape unread;
  sequences_.each_decode([&](Sequence& sequence) {
    if (std::exchange(sequence.drafted, true)) return;
    const std::int64_t tokens = sequences_.unread_tokens(sequence);
    add_prefill(unread, 1, tokens, sequences_.set.context(sequence) - tokens,
                replica_->common->window);
  });
  return unread.prefill_tokens > 0 ? replica_->common->table->read_by_draft(unread) : 0;
}

// A lane in a lockstep group, or in a pipeline, would lose a turn by a step in which no sequence takes part, so it does not wait apart.
bool Lane::read_by_draft_first(double now) {
  if (replica_->group != nullptr || replica_->common->lanes > 1) {
    if (length_ <= 0 || !sequences_.unread_by_draft) return false;
    StepPlan& plan = *replica_->common->scratch_plan;
    plan.clear();
    plan.decodes = running().decoding;
    start_step(plan, now);
    return true;
  }
  const double reading = draft_reading();
  if (reading > 0) wait_for_draft(now, reading);
  return reading > 0;
}

// A step in which no sequence takes part, while the draft reads.
void Lane::wait_for_draft(double now, double seconds) {
  ReplicaState& replica = *replica_;
  const PoolConstants& common = *replica.common;
  work_ = Work::step;
  start_ = now;
  end_ = now + seconds;
  left_ = 0;
  step_decodes_ = 0;
  chunks_.clear();
  common.stats->step_began(now);
  common.sums->ran(0, seconds, 0);
  count_held_in_step(seconds);
}

std::int64_t Lane::draw(std::int64_t decodes) {
  DecodeSet& set = sequences_.set;
  const DecodeSet::Fewer fewer = set.step_apart(decodes, sequences_.blocks());
  step_tokens_ -= fewer.tokens;
  if (replica_->common->own_paces->by_class) {
    set.each_apart([this](const Sequence& sequence, std::int64_t tokens) {
      replica_->common->sums->by_class[std::size_t(sequence.service_class)].verified(tokens);
    });
  }
  return fewer.blocks;
}

void Lane::count_verified(std::int64_t steps, double sequences, double made) {
  PoolSums& sums = *replica_->common->sums;
  const double sequence_steps = double(steps) * sequences;
  sequences_.investment.save(steps * saves_);
  sums.verifications += sequence_steps;
  sums.verified_tokens += made;
  sums.proposed_tokens += sequence_steps * double(sequences_.set.pace().queries - 1);
}

}  // namespace engine

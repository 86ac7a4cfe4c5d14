#include "engine/serving/lane/proposals.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "engine/serving/lane/lane.h"

namespace engine {

Decodes Proposals::decoding() const {
  std::int64_t batches = 1;
  if (replica_->common->lanes > 1) {
    const std::span<const Lane> lanes(replica_->first_lane, std::size_t(replica_->common->lanes));
    batches =
        std::ranges::count_if(lanes, [](const Lane& lane) { return lane.running().count > 0; });
  }
  const DecodeSet& set = sequences_->set;
  return {.sequences = set.running().decoding, .context = set.contexts(), .batches = batches};
}

// Where the draft's reading of prompts does not pay, nothing is proposed.
int Proposals::pick() {
  const Decodes decodes = decoding();
  StepTable& table = *replica_->common->table;
  if (replica_->common->late_reading == nullptr) return table.pick(decodes);
  DraftInvestment& investment = sequences_->investment;
  if (!investment.begun()) begin_investment();
  const bool proposes = investment.pays();
  const DraftLengths::Saving& saving = table.saving(decodes);
  saves_ = proposes ? saving.proposing : saving.otherwise;
  const int picked = table.pick(decodes);
  const double made = table.length(picked).expected;
  investment.begin_work(proposes ? made - 1 : 1 - 1 / made);
  return proposes ? picked : 0;
}

// The plan has left room for as many as were picked before: with fewer some of it is not used.
int Proposals::pick_beside_prompts(int length) {
  const Decodes decodes = decoding();
  StepTable& table = *replica_->common->table;
  const int picked = length > 0 ? table.pick_beside_prompts(decodes, length) : length;
  if (replica_->common->late_reading == nullptr) return picked;
  const DraftLengths::Saving& saving = table.saving_beside_prompts(decodes);
  saves_ = sequences_->investment.pays() ? saving.proposing : saving.otherwise;
  return picked;
}

// As many as are inside and have room decode together, halfway through their answers.
void Proposals::begin_investment() {
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
  sequences_->investment.begin(
      1e-12 * double(saving.otherwise) * typical.output / together,
      std::max(typical.least / coming, typical.per_token * typical.prompt));
}

double Proposals::read(int length) {
  if (!has_to_read(length)) return 0;
  sequences_->unread_by_draft = false;
  BatchShape unread;
  sequences_->each_decode([&](Sequence& sequence) {
    if (std::exchange(sequence.drafted, true)) return;
    const std::int64_t tokens = sequences_->unread_tokens(sequence);
    add_prefill(unread, 1, tokens, sequences_->set.context(sequence) - tokens,
                replica_->common->window);
  });
  return unread.prefill_tokens > 0 ? replica_->common->table->read_by_draft(unread) : 0;
}

DecodeSet::Fewer Proposals::draw(std::int64_t decodes) {
  DecodeSet& set = sequences_->set;
  const DecodeSet::Fewer fewer = set.step_apart(decodes, sequences_->blocks());
  if (replica_->common->own_paces->by_class) {
    set.each_apart([this](const Sequence& sequence, std::int64_t tokens) {
      replica_->common->sums->by_class[std::size_t(sequence.service_class)].verified(tokens);
    });
  }
  return fewer;
}

void Proposals::count_verified(std::int64_t steps, double sequences, double made) {
  PoolSums& sums = *replica_->common->sums;
  const double sequence_steps = double(steps) * sequences;
  sequences_->investment.save(steps * saves_);
  sums.verifications += sequence_steps;
  sums.verified_tokens += made;
  sums.proposed_tokens += sequence_steps * double(sequences_->set.pace().queries - 1);
}

}  // namespace engine

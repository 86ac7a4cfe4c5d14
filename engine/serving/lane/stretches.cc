#include "engine/serving/lane/stretches.h"

#include <algorithm>

#include "engine/serving/lane/lockstep_group.h"

namespace engine {

void Stretches::reset(ReplicaState& replica) {
  replica_ = &replica;
  sequences_.reset(replica);
  proposals_.reset(replica, sequences_);
  stretch_.keep_pace(sequences_.set.pace());
  stretch_.line = &kNoLine;
  free_since_ = start_ = 0;
  work_ = Work::none;
  end_ = kNever;
  left_ = more_alike_ = 0;
  seen_steps_ = kAllSteps;
  steady_ = Steady::no;
  chunks_.clear();
  length_ = -1;
}

// A part of it on one straight line.
void Stretches::start_stretch(double now) {
  find_line(now);
  if (replica_->group != nullptr) return follow_group();
  stretch_.begin(now, left_, tokens_to_full_window());
  // Where a length is picked, the next part may have another.
  left_ = length_ < 0 ? left_ - stretch_.steps : 0;
  end_ = stretch_.end();
  const PoolConstants& common = *replica_->common;
  if (common.given_up_in_sight()) {
    seen_steps_ = kAllSteps;
    split(replica_->pool.next_to_expire());
  }
  if (common.turns.any() && common.turns.ends(now) < end_) stop_at(common.turns.ends(now));
  take_first_blocks();
  if (common.given_up_in_sight()) find_next_taking(1);
}

void Stretches::log_work(LoggedWork work) const {
  work.role = replica_->common->role;
  work.replica = replica_->number;
  work.start = start_;
  work.end = end_;
  replica_->common->log->add(work);
}
void Stretches::log_stretch() const { log_work({.stretch = stretch_, .pace = *stretch_.pace}); }
void Stretches::log_step(const BatchShape& batch) const { log_work({.batch = batch}); }

void Stretches::end_stretch() {
  ReplicaState& replica = *replica_;
  const PoolConstants& common = *replica.common;
  const bool alone = replica.group == nullptr;
  const double n = double(stretch_.steps);
  if (!alone) ask_group();
  const double seconds = alone ? stretch_.lasts : end_ - start_;
  common.stats->step_began(start_);
  if (alone && common.log != nullptr) log_stretch();
  replica.pool.take(sequences_.set.blocks_needed(stretch_.steps) - taken_);
  common.sums->peak(replica.pool.used());
  count_steps(n, stretch_.sums(), seconds);
  if (alone || !goes_on_in_group_) add_first_gaps();
  if (alone && stretch_.steps > 1) {
    common.stats->add_gaps(stretch_, 1, stretch_.steps, seconds - stretch_.first_step);
  }
  sequences_.gaps.all_decoded(end_);
  stream_stretch();
  const double made = stretch_.tokens(n) * stretch_.sequences;
  replica.tokens_made += made;
  if (length_ >= 0) proposals_.count_verified(stretch_.steps, stretch_.sequences, made);
  sequences_.set.advance(stretch_.steps, stretch_.sequences);
  replica.inbox.count(stretch_.steps, Inbox::Steps::decodes);
  sequences_.tell_due(end_);
  sequences_.finish_due();
}

void Stretches::begin_next_part(double now) {
  end_ = now;
  replica_->pool.pass(now);
  end_stretch();
  if (replica_->common->audit) sequences_.recount();
  if (replica_->group != nullptr) return begin_next_part_in_group(now);
  free_since_ = now;
  start_stretch(now);
}

}  // namespace engine

// Moments inside the work of a lane: what they find there, and where they cut it.
#include <algorithm>

#include "engine/serving/lane/lockstep_group.h"
#include "engine/serving/lane/stretches.h"
#include "engine/serving/sequences/whole_moments.h"

namespace engine {

void Stretches::cut(std::int64_t steps) {
  left_ += stretch_.steps - steps;
  stretch_.take(steps);
  if (!takes_blocks_next()) end_ = stretch_.end();
}

void Stretches::split(double time) {
  if (work_ != Work::stretch || (time >= end_ && time >= end_of_work())) return;
  if (replica_->group != nullptr) return replica_->group->split(time);
  cut(stretch_.steps_until(time));
}

void Stretches::stop_at(double time) {
  if (work_ == Work::stretch && replica_->group != nullptr) {
    stretch_.steps = replica_->group->stop(member(), time);
  } else {
    split(time);
  }
  left_ = 0;
}

// Blocks that several sequences share hold their tokens once. In a pipeline, and where KV comes from elsewhere, a lane does not know for
// how long others shared what, so there every sequence counts in full. States are each sequence's own.
double Stretches::held_with_states(double token_seconds, double seconds) const {
  const double states = seconds * double(running().count) * double(replica_->common->states);
  if (replica_->common->lanes > 1 || replica_->common->carries()) return token_seconds + states;
  return std::max(0.0, token_seconds - seconds * replica_->saved_by_sharing()) + states;
}

void Stretches::count_sharing(double more, double now) {
  const PoolConstants& common = *replica_->common;
  if (!working() || !common.counts_room || common.lanes > 1 || common.carries()) return;
  // A stretch is counted when it ends, a step when it begins.
  common.sums->kv_token_seconds += more * (work_ == Work::stretch ? now - start_ : now - end_);
}

std::int64_t Stretches::steps_to_boundary(double now) const {
  if (work_ == Work::stretch) return stretch_.steps_until(now);
  return work_ == Work::step && (step_decodes_ > 0 || !chunks_.empty()) ? 1 : 0;
}

void Stretches::end_where_taken_in() {
  if (steady_ == Steady::no || work_ != Work::stretch) return;
  const std::int64_t steps = replica_->inbox.steps_left();
  if (steps < stretch_.steps) cut(steps);
  left_ = 0;
}

void Stretches::settle(double time) {
  if (work_ != Work::stretch) return;
  if (time < end_) return take_blocks_until(steps_until(time));
  if (replica_->common->tells_late()) take_blocks_until(std::min(seen_steps_, stretch_.steps));
}

// Of cache, where tiers below need not hear at once that it was used, they hear when its last step took some.
void Stretches::take_blocks_until(std::int64_t steps) {
  KvPool& pool = replica_->pool;
  const std::int64_t blocks = sequences_.set.blocks_needed(steps) - taken_;
  taken_ += blocks;
  if (!replica_->common->tells_late() || blocks <= pool.before_cache()) return pool.take(blocks);
  const std::int64_t before = sequences_.set.last_step_that_takes(steps) - 1;
  const double then = before == 0 ? start_ : start_ + stretch_.seconds(before);
  pool.take_late(blocks, {moments_until(then), replica_->number});
}

void Stretches::tell_at_once(double time) {
  if (work_ == Work::stretch && time < end_) find_next_taking(steps_until(time));
}

// Blocks that are taken before any cache suffice for some steps, and so does cache that other replicas need not hear of at once. The step
// after these takes cache in sight of the others, and is an event of its own.
void Stretches::find_next_taking(std::int64_t steps_taken) {
  KvPool& pool = replica_->pool;
  const bool late = replica_->common->tells_late() && replica_->waiting.empty();
  const std::int64_t unseen = late ? pool.expect_to_take_late() : pool.before_cache();
  seen_steps_ = sequences_.set.more_steps_that_fit(steps_taken, stretch_.steps, unseen);
  end_ = takes_blocks_next() ? start_ + stretch_.seconds(seen_steps_) : stretch_.end();
}

bool Stretches::take_next_blocks() {
  if (replica_->common->tells_late()) settle(end_);
  if (takes_blocks_next() && !replica_->waiting.empty()) cut(seen_steps_);
  if (!takes_blocks_next()) {
    replica_->pool.expect_to_take_nothing();
    return false;
  }
  const std::int64_t blocks = sequences_.set.blocks_needed(seen_steps_ + 1);
  replica_->pool.take(blocks - taken_);
  taken_ = blocks;
  find_next_taking(seen_steps_ + 1);
  return true;
}

// What the present stretch has added by `time`; a step adds all it adds at its end.
Stretches::Moment Stretches::at(double time) const {
  Moment moment;
  if (work_ == Work::step) moment.sequences = step_decodes_ + std::int64_t(chunks_.size());
  if (work_ == Work::stretch) moment.sequences = std::int64_t(stretch_.sequences);
  if (work_ != Work::stretch || time >= end_of_work()) return moment;
  const std::int64_t done = steps_over(time);
  if (done <= 0) return moment;
  moment.blocks = sequences_.set.blocks_needed(done + 1) - taken_;
  moment.tokens = stretch_.tokens(double(done)) * stretch_.sequences;
  return moment;
}

// Those of decodes, and the first one of each prompt that has been read.
void Stretches::stream_step() {
  const PoolConstants& common = *replica_->common;
  // At a common pace as many as in stretches, which do not tell their steps apart.
  const double tokens = common.own_paces != nullptr ? double(step_tokens_)
                                                    : double(step_decodes_) * stretch_.pace->rate();
  double first = 0;
  for (const Chunk& chunk : chunks_) {
    const Sequence& sequence = at(chunk.slot);
    if (sequence.computed + chunk.tokens == sequence.target) first += 1;
  }
  if (tokens + first <= 0) return;
  replica_->front_end.take(end_, {.further = common.message_seconds.further * tokens,
                                  .first = common.message_seconds.first * first});
}

// The last one by itself: something may come from elsewhere when it ends.
void Stretches::stream_steps_and_last() {
  FrontEnd& front_end = replica_->front_end;
  const std::int64_t before = stretch_.steps - 1;
  if (before > 0) {
    // Where others step with it, its steps are taken for equal but for the first.
    const double rest = end_ - start_ - stretch_.first_step;
    const double last = replica_->group == nullptr ? start_ + stretch_.seconds(before)
                                                   : end_ - rest / double(before);
    front_end.take_steps(start_ + stretch_.first_step, last, before, stream_seconds());
  }
  front_end.take(end_, {.further = stream_seconds()});
}

// What ends at this very moment is told after it.
void Stretches::stream_until(double time, FrontEnd& front_end) const {
  if (work_ != Work::stretch || !replica_->common->streams()) return;
  const LockstepGroup* group = replica_->group;
  const std::int64_t over =
      group == nullptr ? stretch_.steps_until(time) - 1 : group->steps_ended(member(), time);
  if (over <= 0) return;
  const double first = group == nullptr ? stretch_.first_step : group->first_step_of(member());
  const double last =
      group == nullptr ? start_ + stretch_.seconds(over) : group->last_boundary(time);
  front_end.take_steps(start_ + first, last, over, stream_seconds());
}

std::int64_t Stretches::steps_until(double time) const {
  if (replica_->group != nullptr) return replica_->group->steps_until(member(), time);
  return stretch_.steps_until(time);
}

std::int64_t Stretches::steps_over(double time) const {
  if (replica_->group != nullptr) return replica_->group->steps_over(member(), time);
  const std::int64_t begun = stretch_.steps_until(time);
  return start_ + stretch_.seconds(begun) > time + kSameMoment ? begun - 1 : begun;
}

}  // namespace engine

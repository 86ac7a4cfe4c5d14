// Moments inside the work of a lane: what they find there, and where they cut it.
#include "engine/serving/lane/lane.h"
#include "engine/serving/lane/lockstep_group.h"

namespace engine {

void Lane::cut(std::int64_t steps) {
  left_ += stretch_.steps - steps;
  stretch_.take(steps);
  if (!takes_blocks_next()) end_ = stretch_.end();
}

void Lane::split(double time) {
  if (work_ != Work::stretch || (time >= end_ && time >= end_of_work())) return;
  if (replica_->group != nullptr) return replica_->group->split(time);
  cut(stretch_.steps_until(time));
}

void Lane::stop_at(double time) {
  if (work_ == Work::stretch && replica_->group != nullptr) {
    stretch_.steps = replica_->group->stop(member(), time);
  } else {
    split(time);
  }
  left_ = 0;
}

void Lane::settle(double time) {
  if (work_ != Work::stretch || time >= end_) return;
  const std::int64_t blocks = sequences_.set.blocks_needed(steps_until(time));
  replica_->pool.take(blocks - taken_);
  taken_ = blocks;
}

// What is taken before any cache suffices for some steps. The step after these takes from the cache.
void Lane::find_next_taking(std::int64_t steps_taken) {
  seen_steps_ = sequences_.set.more_steps_that_fit(steps_taken, stretch_.steps,
                                                   replica_->pool.before_cache());
  end_ = takes_blocks_next() ? start_ + stretch_.seconds(seen_steps_) : stretch_.end();
}

bool Lane::take_next_blocks() {
  if (!takes_blocks_next()) return false;
  if (!replica_->waiting.empty()) {
    cut(seen_steps_);
    return false;
  }
  const std::int64_t blocks = sequences_.set.blocks_needed(seen_steps_ + 1);
  replica_->pool.take(blocks - taken_);
  taken_ = blocks;
  find_next_taking(seen_steps_ + 1);
  return true;
}

// What the present stretch has added by `time`; a step adds all it adds at its end.
Lane::Moment Lane::at(double time) const {
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

std::int64_t Lane::steps_until(double time) const {
  if (replica_->group != nullptr) return replica_->group->steps_until(member(), time);
  return stretch_.steps_until(time);
}

std::int64_t Lane::steps_over(double time) const {
  if (replica_->group != nullptr) return replica_->group->steps_over(member(), time);
  const std::int64_t begun = stretch_.steps_until(time);
  return start_ + stretch_.seconds(begun) > time + kSameMoment ? begun - 1 : begun;
}

}  // namespace engine

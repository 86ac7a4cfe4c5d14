// Turns of a pipeline in which its lanes only decode on: nobody comes, nobody is done, nothing is to be planned. Most steps
// are such, so they are told from others once, and take no more than their sums.
#include "engine/serving/replica.h"

namespace engine {

// As `end_stretch`, where nobody is done,
[[gnu::always_inline]] inline void Lane::end_single_step() {
  ReplicaState& replica = *replica_;
  replica.stats->step_began(start_);
  replica.sums->peak(replica.pool.used());
  count_steps(1, stretch_.single_step(double(sequences_.set.prompt_tokens())), stretch_.first_step);
  sequences_.gaps.all_decoded(end_);
  replica.tokens_made += stretch_.tokens(1) * stretch_.sequences;
  sequences_.set.advance(1, stretch_.sequences);
  if (replica.audit) sequences_.recount();
}

// and as `start_stretch`, for a step at a time.
[[gnu::always_inline]] inline void Lane::start_single_step(double now) {
  begin_work(now);
  find_line(now);
  stretch_.begin(now, 1, kNever);
  left_ = 0;
  end_ = stretch_.end();
  take_first_blocks();
  take_stage(now);
}

[[gnu::always_inline]] inline void Lane::decode_on() {
  const ReplicaState& replica = *replica_;
  const double now = end_;
  replica_->pool.pass(now);
  if (work_ == Work::stretch) {
    end_single_step();
    work_ = Work::none;
    free_since_ = now;
  }
  if (now + kSameMoment < replica.stage_free) {
    end_ = replica.stage_free;
  } else if (goes_on()) {
    start_single_step(now);
  } else {
    plan(now);
  }
}

std::int64_t Replica::decode_on(double until) {
  std::int64_t turns = 0;
  if (state_.lanes == 1 || !state_.plain || state_.more_to_come() || state_.halted) return turns;
  for (double others = find_next();; ++turns) {
    const double moment = next_event_ + kSameMoment;
    const bool alone = moment < until && moment < others && state_.waiting.empty();
    if (!alone || !lanes_[next_lane_].decodes_on()) return turns;
    now_ = next_event_;
    turn_ = next_lane_;
    lanes_[turn_].decode_on();
    if (!state_.waiting.empty()) wake_all();
    others = find_next();
  }
}

}  // namespace engine

// Turns of a pipeline in which its lanes only decode on: no sequence comes or ends, and nothing is to be planned. Most steps are such, so
// they are recognised once and then only summed up.
#include "engine/serving/replica/replica.h"

namespace engine {

// As `end_stretch`, where no sequence ends,
[[gnu::always_inline]] inline void Lane::end_single_step() {
  ReplicaState& replica = *replica_;
  const PoolConstants& common = *replica.common;
  common.stats->step_began(start_);
  common.sums->peak(replica.pool.used());
  count_steps(1, stretch_.sums(), stretch_.first_step);
  add_first_gaps();
  sequences_.gaps.all_decoded(end_);
  stream_stretch();
  replica.tokens_made += double(running().next_tokens) * stretch_.sequences;
  sequences_.set.advance(1, stretch_.sequences);
  if (common.audit) sequences_.recount();
}

// and as `start_stretch`, for a step at a time.
[[gnu::always_inline]] inline void Lane::start_single_step(double now) {
  begin_work(now);
  find_line(now);
  stretch_.begin_single(now);
  left_ = 0;
  end_ = stretch_.end();
  take_first_blocks();
  take_stage(now);
}

[[gnu::always_inline]] inline Lane::Decoded Lane::decode_on(double others) {
  const ReplicaState& replica = *replica_;
  const double now = end_, stage_free = replica.stage_free;
  if (work_ == Work::stretch) {
    end_single_step();
    work_ = Work::none;
    free_since_ = now;
  }
  if (now + kSameMoment < stage_free) {
    end_ = stage_free;
    if (stage_free + kSameMoment >= others || !has_blocks()) return {.last = now};
    start_single_step(stage_free);
    return {.last = stage_free, .turns = 2};
  }
  if (has_blocks()) {
    start_single_step(now);
  } else {
    plan(now);
  }
  return {.last = now};
}

std::int64_t Replica::decode_on(double until) {
  std::int64_t turns = 0;
  if (lanes_.size() == 1 || !state_.common->plain || state_.more_to_come() || state_.halted)
    return turns;
  while (state_.waiting.empty()) {
    const double others = std::min(until, find_next());
    Lane& lane = *next_lane_;
    if (next_event_ + kSameMoment >= others || !lane.decodes_on()) return turns;
    turn_ = next_lane_;
    const Lane::Decoded taken = lane.decode_on(others);
    now_ = taken.last;
    turns += taken.turns;
  }
  // Other lanes may have something to do again.
  if (turns > 0) {
    wake_all();
    find_next();
  }
  return turns;
}

}  // namespace engine

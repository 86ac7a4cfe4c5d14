// Turns of a pipeline in which its lanes only decode on: no sequence comes or ends, and nothing is to be planned. Most steps are such, so
// they are recognised once and then only summed up.
#include <algorithm>

#include "engine/base/check.h"
#include "engine/serving/replica/replica.h"

namespace engine {

// As `end_stretch`, where no sequence ends,
[[gnu::always_inline]] inline void Lane::end_single_step() {
  ReplicaState& replica = *replica_;
  const PoolConstants& common = *replica.common;
  common.stats->step_began(start_);
  common.sums->peak(replica.pool.used());
  common.table->count_decode(*stretch_.line, 1, stretch_.context, stretch_.window,
                             stretch_.first_step);
  common.sums->ran(1, stretch_.first_step, stretch_.sequences);
  common.sums->adapter_steps += double(sequences_.adapters.different());
  count_held_in_step(stretch_.first_step);
  add_first_gaps();
  sequences_.gaps.all_decoded(end_);
  stream_stretch();
  replica.tokens_made += double(running().next_tokens) * stretch_.sequences;
  sequences_.set.advance(1, stretch_.sequences);
  if (!common.audit) return;
  sequences_.recount();
  check(more_alike_ <= sequences_.set.steps_to_next_end(), "no sequence ends before it is known");
}

// and as `start_stretch`, for a step at a time.
[[gnu::always_inline]] inline void Lane::start_single_step(double now) {
  --more_alike_;
  if (stays_on_line()) {
    work_ = Work::stretch;
    start_ = now;
    stretch_.context = sequences_.set.contexts();
    stretch_.from = running().step;
  } else {
    find_line(now);
  }
  stretch_.begin_single(now);
  left_ = 0;
  end_ = stretch_.end();
  take_first_blocks();
  take_stage(now);
}

// Where requests wait, a step ends, and the next one is planned when the first stage is free.
[[gnu::always_inline]] inline Lane::Decoded Lane::decode_on(double others) {
  const ReplicaState& replica = *replica_;
  const double now = end_, stage_free = replica.stage_free;
  const bool some_wait = !replica.waiting.empty();
  if (work_ == Work::stretch) {
    end_single_step();
    work_ = Work::none;
    free_since_ = now;
  }
  if (now + kSameMoment < stage_free) {
    end_ = stage_free;
    const bool alone = !some_wait && stage_free + kSameMoment < others;
    if (!alone || !has_blocks()) return {.last = now};
    begin_work(stage_free);
    start_single_step(stage_free);
    return {.last = stage_free, .turns = 2};
  }
  if (some_wait) return {.last = now};
  if (has_blocks()) {
    begin_work(now);
    start_single_step(now);
  } else {
    plan(now);
  }
  return {.last = now};
}

std::int64_t Replica::decode_on(double until) {
  std::int64_t turns = 0;
  if (state_.more_to_come() || state_.halted) return turns;
  const bool some_wait = !state_.waiting.empty();
  if (some_wait && (state_.loads() || std::ranges::any_of(lanes_, &Lane::idle))) return turns;
  while (some_wait || state_.waiting.empty()) {
    const double others = std::min(until, find_next());
    Lane& lane = *next_lane_;
    const bool goes_on = some_wait ? lane.working() && lane.decodes_on() : lane.decodes_on();
    if (next_event_ + kSameMoment >= others || !goes_on) return turns;
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

// Stretches of decode steps in closed form: planned to the next thing that can happen, cut where
// something happens before, summed up at the end.
#include <algorithm>
#include <cmath>

#include "engine/serving/lane.h"

namespace engine {

// Everybody decodes, for as long as the plan would be the same. Lanes of a pipeline share the blocks
// and take turns in the first stage: they take one step at a time.
void Lane::start_steady(double now) {
  left_ = 1;
  if (steady_ != Steady::no && replica_->lanes == 1) {
    left_ = steps_that_fit(finishes_.next(running_.step) - running_.step);
  }
  start_stretch(now);
}

// A part of it on one straight line.
void Lane::start_stretch(double now) {
  work_ = Work::stretch;
  start_ = now;
  const double sequences = double(running_.decoding);
  stretch_.context = contexts_;
  stretch_.window = windows_;
  stretch_.sequences = sequences;
  stretch_.growing = double(inside_window_);
  stretch_.line =
      replica_->table->decode_line({.sequences = running_.decoding,
                                    .context = contexts_,
                                    .window = windows_,
                                    .longest = replica_->uneven ? longest_context() : 0});
  const DecodeLine& line = stretch_.line;

  const double above = line.device(contexts_, windows_) + line.added - line.least;
  on_floor_ = above <= 0;
  rise_ = line.slope * sequences + line.window_slope * stretch_.growing;
  steps_ = left_ > 1 ? steps_on_line(above) : 1;
  left_ -= steps_;
  first_step_ = line.step(contexts_, windows_);
  end_ = start_ + stretch_seconds(steps_);
  // The first step's blocks are gone from the start on: other lanes plan meanwhile.
  taken_ = running_.next_blocks;
  replica_->pool.take(taken_);
}

// As far as the line holds, nobody fills his window, and host or device keeps setting the pace: the
// device takes `above` longer than the host in the first step.
std::int64_t Lane::steps_on_line(double above) const {
  const DecodeLine& line = stretch_.line;
  double most = double(left_);
  most = std::min(most, std::ceil((line.context_end - contexts_) / stretch_.sequences));
  if (inside_window_ > 0) {
    most = std::min(most, std::ceil((line.window_end - windows_) / stretch_.growing));
    most = std::min(most, double(crossings_.next(running_.step) - running_.step));
  }
  if (on_floor_ && rise_ > 0) most = std::min(most, std::floor(-above / rise_) + 1);
  if (!on_floor_ && rise_ < 0) most = std::min(most, std::ceil(above / -rise_));
  return std::max<std::int64_t>(1, std::int64_t(most));
}

double Lane::stretch_seconds(std::int64_t steps) const {
  const double n = double(steps);
  return on_floor_ ? n * first_step_ : n * first_step_ + rise_ * (n * (n - 1) / 2);
}

// The fewest steps after which `time` is past, between one and all.
std::int64_t Lane::steps_until(double time) const {
  const double target = time - kSameMoment - start_;
  if (target <= first_step_ || steps_ <= 1) return 1;
  double guess = 0;
  const double half = on_floor_ ? 0 : rise_ / 2;
  if (half == 0) {
    guess = target / first_step_;
  } else {
    const double linear = first_step_ - half;
    const double root = std::sqrt(std::max(0.0, linear * linear + 4 * half * target));
    guess = 2 * target / (linear + root);
  }
  std::int64_t steps = std::clamp(std::int64_t(guess), std::int64_t{1}, steps_);
  while (steps > 1 && stretch_seconds(steps - 1) >= target) --steps;
  while (steps < steps_ && stretch_seconds(steps) < target) ++steps;
  return steps;
}

void Lane::cut(std::int64_t steps) {
  left_ += steps_ - steps;
  steps_ = steps;
  end_ = start_ + stretch_seconds(steps);
}

void Lane::split(double time) {
  if (work_ == Work::stretch && time < end_) cut(steps_until(time));
}

void Lane::settle(double time) {
  if (work_ != Work::stretch || time >= end_) return;
  const std::int64_t blocks = blocks_needed(steps_until(time));
  replica_->pool.take(blocks - taken_);
  taken_ = blocks;
}

void Lane::interrupt(double time) {
  if (steady_ != Steady::until_arrival) return;
  if (work_ == Work::stretch && time < end_) cut(steps_until(time));
  left_ = 0;
}

void Lane::end_stretch() {
  ReplicaState& replica = *replica_;
  const double n = double(steps_);
  const double seconds = stretch_seconds(steps_);
  replica.stats->step_began(start_);
  replica.pool.take(blocks_needed(steps_) - taken_);
  replica.stats->kv_peak(replica.pool.used());
  replica.table->count_decode(stretch_.line, n, stretch_.context_sum(n), stretch_.window_sum(n),
                              seconds);
  // KV held over the stretch: what is attended to, less the token each sequence adds in the step.
  const double b = stretch_.sequences;
  const double sum = stretch_.context_sum(n) - n * b + n * double(prompt_tokens_);
  double held = sum * first_step_;
  if (!on_floor_) {
    // Each step i holds (held_0 + i b) for (first + i rise).
    const double ones = n * (n - 1) / 2, squares = ones * (2 * n - 1) / 3;
    held += rise_ * ((stretch_.context - b + double(prompt_tokens_)) * ones + b * squares);
  }
  replica.stats->ran(n, seconds, b, held);
  add_decode_gaps(start_, first_step_);
  if (steps_ > 1) replica.stats->add_gaps(stretch_, 1, steps_, seconds - first_step_);
  last_decode_ = end_;
  replica.tokens_made += n * b;

  running_.step += steps_;
  contexts_ += n * b;
  windows_ += n * stretch_.growing;
  if (replica.window > 0) cross_windows();
  count_next_blocks();
  finish_due(end_);
}

// The gaps that the first decode of a stretch ends: those of newcomers are shorter.
void Lane::add_decode_gaps(double start, double first_step) {
  ServingStats& stats = *replica_->stats;
  double others = double(running_.decoding);
  if (uneven_) {
    for (std::int32_t slot = running_.first; slot >= 0; slot = at(slot).after) {
      const Sequence& sequence = at(slot);
      if (!sequence.decoding) continue;
      stats.add_gap(start - std::max(sequence.last_token, last_decode_) + first_step, 1);
    }
    others = 0;
    uneven_ = false;
    newcomers_.clear();
  }
  for (const Newcomers& group : newcomers_) {
    stats.add_gap(start - group.time + first_step, group.count);
    others -= group.count;
  }
  newcomers_.clear();
  if (others <= 0) return;
  const double stall = start - last_decode_;
  stats.add_gap(stall > 0 ? stall + first_step : first_step, others);
}

// What the present stretch has added by `time`; a step adds all it adds at its end.
Lane::Moment Lane::at(double time) const {
  Moment moment;
  if (work_ == Work::step) moment.sequences = step_decodes_ + std::int64_t(chunks_.size());
  if (work_ == Work::stretch) moment.sequences = std::int64_t(stretch_.sequences);
  if (work_ != Work::stretch || time >= end_) return moment;
  std::int64_t done = steps_until(time);
  if (start_ + stretch_seconds(done) > time + kSameMoment) --done;
  if (done <= 0) return moment;
  moment.blocks = blocks_needed(done + 1) - taken_;
  moment.tokens = double(done) * stretch_.sequences;
  return moment;
}

}  // namespace engine

// Decode steps of one batch on one straight line, in closed form: how long they take, and in which of them a moment lies. Step time is
// linear in context while the device sets the pace, and constant while the host does. A stretch ends where that changes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "engine/base/moment.h"
#include "engine/step/pace.h"
#include "engine/step/step_table.h"

namespace engine {

struct Stretch {
  const DecodeLine* line = &kNoLine;
  double context = 0;    // tokens attended to in the first step
  double window = 0;     // the same in layers with a sliding window
  double sequences = 0;  // each token made adds as many to the context
  double growing = 0;    // of these, sequences that have not filled their window
  const Pace* pace = &kOneByOne;
  bool plain = true;      // the pace is one token per step
  std::int64_t from = 0;  // decode steps that the lane took before
  double start = 0;       // seconds
  double first_step = 0;  // seconds
  double rise = 0;        // seconds by which a step grows with each token made
  bool on_floor = false;  // the host sets the pace
  bool even = false;      // all steps take equally long
  std::int64_t steps = 0;
  double lasts = 0;  // seconds of all steps

  void keep_pace(const Pace& now) {
    pace = &now;
    plain = now.plain();
  }
  // Begins on a line that is set: at most `most` steps, and no longer than until a window is full, in `filling` tokens.
  void begin(double now, std::int64_t most, double filling) {
    start = now;
    double busy = line->fixed + line->slope * context, device_rise = line->slope * sequences;
    double waiting_rise = 0;
    if (!line->plain) {
      busy += line->window_slope * window;
      device_rise += line->window_slope * growing;
      const double proposals_rise =
          line->proposing_slope * sequences + line->proposing_window_slope * growing;
      waiting_rise = line->listing_slope * sequences + proposals_rise;
    }
    busy += line->added;
    const double above = busy - line->least;
    on_floor = above <= 0;
    rise = on_floor ? waiting_rise : device_rise + waiting_rise;
    even = rise == 0;
    first_step = on_floor ? line->least : busy;
    if (!line->plain) first_step = line->after_proposals(busy, context, window);
    take(most > 1 ? steps_on_line(most, above, device_rise, filling) : 1);
  }
  // The same in a lockstep group, which knows when the steps begin and how long they take.
  void begin_with_others(std::int64_t most, double filling) {
    on_floor = false;
    even = true;
    steps = most > 1 ? steps_on_line(most, 0, 0, filling) : 1;
  }
  // Begins a single step.
  void begin_single(double now) {
    start = now;
    first_step = lasts = line->plain ? line->plain_step(context) : line->step(context, window);
    rise = 0;
    even = true;
    steps = 1;
  }
  void take(std::int64_t count) {
    steps = count;
    lasts = count == 1 ? first_step : seconds(count);
  }

  double tokens(double step) const {
    return plain ? step : double(pace->made(from, std::int64_t(step)));
  }
  double step(double i) const { return even ? first_step : first_step + rise * tokens(i); }
  double seconds(std::int64_t count) const {
    const double n = double(count);
    return even ? n * first_step : n * first_step + rise * sum(n);
  }
  double end() const { return start + lasts; }
  // Sums over all steps: tokens attended to, the same in windows, and tokens that each sequence had made before.
  struct Sums {
    double context = 0, window = 0, made = 0;
  };
  Sums sums() const {
    if (steps == 1) return {context, window};
    const double n = double(steps), made = sum(n);
    return {n * context + sequences * made, n * window + growing * made, made};
  }
  // The integral over time of the KV tokens held: what is attended to, less the token that each sequence adds in the step, plus
  // `others`.
  double held_seconds(const Sums& sums, double others) const {
    const double n = double(steps);
    const double held = (sums.context - n * sequences + n * others) * first_step;
    if (even || steps == 1) return held;
    // Step i holds (held_0 + sequences * i) for (first_step + rise * i).
    const double squares = pace->squares(from, steps);
    return held + rise * ((context - sequences + others) * sums.made + sequences * squares);
  }

  // The fewest steps after which `time` is past, at least one and at most all.
  std::int64_t steps_until(double time) const {
    const double target = time - kSameMoment - start;
    if (target <= first_step || steps <= 1) return 1;
    double guess = 0;
    const double a_step = plain ? rise : rise * double(pace->tokens) / double(pace->steps);
    const double half = even ? 0 : a_step / 2;
    if (half == 0) {
      guess = target / first_step;
    } else {
      const double linear = first_step - half;
      const double root = std::sqrt(std::max(0.0, linear * linear + 4 * half * target));
      guess = 2 * target / (linear + root);
    }
    std::int64_t count = std::clamp(std::int64_t(guess), std::int64_t{1}, steps);
    while (count > 1 && seconds(count - 1) >= target) --count;
    while (count < steps && seconds(count) < target) ++count;
    return count;
  }

 private:
  // The sum over `n` steps of the tokens that each sequence had made before the step.
  double sum(double n) const { return plain ? n * (n - 1) / 2 : pace->sum(from, std::int64_t(n)); }

  // Steps for which the line holds, no window is full, and the same one of host and device sets the pace. In the first step the
  // device takes `above` seconds longer than the host, and `device_rise` more with each token.
  std::int64_t steps_on_line(std::int64_t most, double above, double device_rise,
                             double filling) const {
    double made = plain ? double(most) : double(most) * double(pace->most());
    const double to_end = line->context_end - context;
    if (to_end < made * sequences) made = to_end / sequences;
    if (growing > 0) {
      made = std::min(made, (line->window_end - window) / growing);
      made = std::min(made, filling);
    }
    if (on_floor && device_rise > 0) made = std::min(made, std::floor(-above / device_rise) + 1);
    if (!on_floor && device_rise < 0) made = std::min(made, above / -device_rise);
    // Rounded up last, which gives the same as the least of all limits rounded up.
    const auto down = std::int64_t(made);
    const std::int64_t whole = double(down) < made ? down + 1 : down;
    const std::int64_t on_line = plain ? whole : pace->steps_for(from, whole);
    return std::clamp<std::int64_t>(on_line, 1, most);
  }
};

}  // namespace engine

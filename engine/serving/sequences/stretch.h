// Decode steps of one batch on one straight line, in closed form: how long they take, and which of them
// a moment lies in. Step time is linear in context while the device sets the pace and constant while the
// host does; a stretch ends where that changes.
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
  double context = 0;    // tokens attended to in the first step ...
  double window = 0;     // ... and in layers with a sliding window
  double sequences = 0;  // context grows by as many a token
  double growing = 0;    // of these, inside their windows
  const Pace* pace = &kOneByOne;
  bool plain = true;      // that makes a token in each step
  std::int64_t from = 0;  // decode steps the lane took before
  double start = 0;       // seconds
  double first_step = 0;  // likewise
  double rise = 0;        // of step time, a token
  bool on_floor = false;  // the host sets the pace
  bool even = false;      // all steps take as long
  std::int64_t steps = 0;
  double lasts = 0;  // seconds of all steps

  void keep_pace(const Pace& now) {
    pace = &now;
    plain = now.plain();
  }
  // Lines and windows that are known; `most` steps at most, and no window fills up in fewer tokens than
  // `filling`.
  void begin(double now, std::int64_t most, double filling) {
    start = now;
    const double busy = line->device(context, window) + line->added;
    const double above = busy - line->least;
    on_floor = above <= 0;
    const double device_rise = line->slope * sequences + line->window_slope * growing;
    const double proposals_rise =
        line->proposing_slope * sequences + line->proposing_window_slope * growing;
    const double waiting_rise = line->listing_slope * sequences + proposals_rise;
    rise = on_floor ? waiting_rise : device_rise + waiting_rise;
    even = rise == 0;
    first_step = line->after_proposals(busy, context, window);
    take(most > 1 ? steps_on_line(most, above, device_rise, filling) : 1);
  }
  // The same, where others take the steps, too: when they begin, how long they take and who sets the pace is known to them.
  void begin_with_others(std::int64_t most, double filling) {
    on_floor = false;
    even = true;
    steps = most > 1 ? steps_on_line(most, 0, 0, filling) : 1;
  }
  // One step, of which nobody asks where its line goes.
  void begin_single(double now) {
    start = now;
    first_step = lasts = line->step(context, window);
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
  // Over all steps: what is attended to, and tokens that a sequence made before.
  struct Sums {
    double context = 0, window = 0, made = 0;
  };
  Sums sums() const {
    if (steps == 1) return {context, window};
    const double n = double(steps), made = sum(n);
    return {n * context + sequences * made, n * window + growing * made, made};
  }
  // The integral of the KV held, which is what is attended to less the token each sequence adds in the step, and `others` beside.
  double held_seconds(const Sums& sums, double others) const {
    const double n = double(steps);
    const double held = (sums.context - n * sequences + n * others) * first_step;
    if (even || steps == 1) return held;
    // Step i holds (held_0 + sequences * i) for (first_step + rise * i).
    const double squares = pace->squares(from, steps);
    return held + rise * ((context - sequences + others) * sums.made + sequences * squares);
  }

  // The fewest steps after which `time` is past, between one and all.
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
  // Over so many steps, of the tokens that a sequence made before each.
  double sum(double n) const { return plain ? n * (n - 1) / 2 : pace->sum(from, std::int64_t(n)); }

  // As far as the line holds, nobody fills his window, and host or device keeps setting the pace: the
  // device takes `above` longer than the host in the first step, and `device_rise` more for each token.
  std::int64_t steps_on_line(std::int64_t most, double above, double device_rise,
                             double filling) const {
    double made = plain ? double(most) : double(most) * double(pace->most());
    made = std::min(made, (line->context_end - context) / sequences);
    if (growing > 0) {
      made = std::min(made, (line->window_end - window) / growing);
      made = std::min(made, filling);
    }
    if (on_floor && device_rise > 0) made = std::min(made, std::floor(-above / device_rise) + 1);
    if (!on_floor && device_rise < 0) made = std::min(made, above / -device_rise);
    // Rounded up: of a least of several the same as each of them.
    const auto down = std::int64_t(made);
    const std::int64_t whole = double(down) < made ? down + 1 : down;
    const std::int64_t on_line = plain ? whole : pace->steps_for(from, whole);
    return std::clamp<std::int64_t>(on_line, 1, most);
  }
};

}  // namespace engine

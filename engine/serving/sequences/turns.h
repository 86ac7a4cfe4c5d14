// When a replica may begin a step, where other models have its devices in between. Turns go by the clock, whether or not a model has
// anything to do.
#pragma once

#include <cmath>

#include "engine/base/moment.h"

namespace engine {

struct Turns {
  double period = 0;  // 0: there are no others
  double offset = 0;  // when the first turn begins,
  double length = 0;  // and how long each is

  bool any() const { return period > 0; }
  // Share of the time.
  double share() const { return any() ? length / period : 1; }
  // When work may begin from `now` on: at once inside a turn.
  double begins(double now) const { return into(now) < length ? now : now - into(now) + period; }
  // When the turn ends that `now` lies in.
  double ends(double now) const { return now - into(now) + length; }

 private:
  // Time since the last turn began; a moment before the next one is its beginning.
  double into(double now) const {
    const double since = now - offset;
    const double rest = since - std::floor(since / period + kSameMoment / period) * period;
    return rest > 0 ? rest : 0;
  }
};

}  // namespace engine

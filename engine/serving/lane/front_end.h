// The process that streams the tokens of a replica to its clients, one after the other. It works beside the engine, which
// does not wait for it: where steps make tokens faster than it can hand them on, they queue here.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/base/moment.h"

namespace engine {

class FrontEnd {
 public:
  // When clients have what came until `now`. The tokens of one step reach them together.
  double told(double now) const { return std::max(now, busy_until_); }
  // The same of what came from elsewhere: it does not wait for the tokens of steps that end at this very moment. Some replicas
  // end their steps before it comes and some after it, and many steps that are taken at once end later than each would.
  double told_from_elsewhere(double now) const {
    return std::max(now, now > last_step_ + kSameMoment ? busy_until_ : busy_before_last_step_);
  }
  // Tokens of a step that ends now take it `seconds`.
  void take(double now, double seconds) {
    if (now > last_step_ + kSameMoment) {
      busy_before_last_step_ = busy_until_;
      last_step_ = now;
    }
    busy_until_ = told(now) + seconds;
  }
  // As many times, of steps that end from `first` to `last` and grow no shorter. Whatever queue it is that ends last began
  // before all of them, with the first or with the last one: in between, the time that a step leaves for its tokens only grows.
  // Nobody asks what was told at one of their ends.
  void take_steps(double first, double last, std::int64_t steps, double seconds) {
    busy_until_ = std::max(told(first) + double(steps) * seconds, last + seconds);
  }

 private:
  double busy_until_ = 0;
  // When the last step ended; of those that ended at that moment none is in the second.
  double last_step_ = -kNever, busy_before_last_step_ = 0;
};

}  // namespace engine

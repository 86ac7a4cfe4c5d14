// The process that streams the tokens of a replica to its clients, one token after the other. It works beside the engine, which does
// not wait for it. Where steps make tokens faster than it can hand them on, tokens queue here.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/base/moment.h"

namespace engine {

class FrontEnd {
 public:
  // When clients have what came until `now`. The tokens of one step reach them together.
  double told(double now) const { return std::max(now, busy_until_); }
  // The same for what came from elsewhere: it does not wait for the tokens of steps that end at this very moment. Otherwise the answer
  // would depend on whether a replica ends its step before or after the arrival is handled, and on how many steps it took at once.
  double told_from_elsewhere(double now) const {
    return std::max(now, now > last_step_ + kSameMoment ? busy_until_ : busy_before_last_step_);
  }
  // Takes the tokens of a step that ends now, which need `seconds`.
  void take(double now, double seconds) {
    if (now > last_step_ + kSameMoment) {
      busy_before_last_step_ = busy_until_;
      last_step_ = now;
    }
    busy_until_ = told(now) + seconds;
  }
  // Takes the tokens of `steps` steps, the first of which ends at `first` and the last at `last`, each of which needs `seconds`.
  // Steps grow no shorter, so the time that they leave for their tokens only grows. The queue that ends last has therefore begun
  // before all of them, with the first one, or with the last one.
  void take_steps(double first, double last, std::int64_t steps, double seconds) {
    busy_until_ = std::max(told(first) + double(steps) * seconds, last + seconds);
  }

 private:
  double busy_until_ = 0;
  // When the last step ended; and `busy_until_` without the steps that ended at that moment.
  double last_step_ = -kNever, busy_before_last_step_ = 0;
};

}  // namespace engine

// The processes that stream the tokens of a replica to its clients, one message after the other. They work beside the engine, which does
// not wait for them. Where steps make tokens faster than they can be handed on, messages queue here, or carry more tokens each.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/base/moment.h"

namespace engine {

// What becomes of tokens of an answer whose last message has not been sent yet.
enum class LateTokens : std::uint8_t { join_it, queue_up };

class FrontEnd {
 public:
  FrontEnd() = default;
  explicit FrontEnd(LateTokens late) : late_(late) {}
  // When clients have what came until `now`. The tokens of one step reach them together.
  double told(double now) const { return std::max(now, busy_until_); }
  // The same for what came from elsewhere: it does not wait for the tokens of steps that end at this very moment. Otherwise the answer
  // would depend on whether a replica ends its step before or after the arrival is handled, and on how many steps it took at once.
  double told_from_elsewhere(double now) const {
    return std::max(now, now > last_step_ + kSameMoment ? busy_until_ : busy_before_last_step_);
  }
  // What the messages of a step take: of answers that go on, and of those that begin.
  struct Messages {
    double further = 0, first = 0;  // seconds
  };
  // Takes the messages of a step that ends now.
  void take(double now, Messages messages) {
    if (now > last_step_ + kSameMoment) {
      busy_before_last_step_ = busy_until_;
      last_step_ = now;
    }
    take_steps(now, now, 1, messages.further);
    busy_until_ = told(now) + messages.first;
  }
  // Takes the tokens of `steps` steps, the first of which ends at `first` and the last at `last`, each of which needs `seconds`.
  // Steps grow no shorter, so the time that they leave for their tokens only grows. The queue that ends last has therefore begun
  // before all of them, with the first one, or with the last one. Where tokens join messages that still wait, no more than those of
  // one step are ever before a client.
  void take_steps(double first, double last, std::int64_t steps, double seconds) {
    const double queued =
        late_ == LateTokens::join_it ? busy_until_ : told(first) + double(steps) * seconds;
    busy_until_ = std::max(queued, last + seconds);
  }

 private:
  LateTokens late_ = LateTokens::join_it;
  double busy_until_ = 0;
  // When the last step ended; and `busy_until_` without the steps that ended at that moment.
  double last_step_ = -kNever, busy_before_last_step_ = 0;
};

}  // namespace engine

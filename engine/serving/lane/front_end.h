// The process that streams the tokens of a replica to its clients, one after the other. It works beside the engine, which
// does not wait for it: where steps make tokens faster than it can hand them on, they queue here.
#pragma once

#include <algorithm>
#include <cstdint>

namespace engine {

class FrontEnd {
 public:
  // When clients have what came until `now`. The tokens of one step reach them together.
  double told(double now) const { return std::max(now, busy_until_); }
  // Tokens of a step that ends now take it `seconds`.
  void take(double now, double seconds) { busy_until_ = told(now) + seconds; }
  // As many times, of steps that end from `first` to `last` and grow no shorter. Whatever queue it is that ends last began
  // before all of them, with the first or with the last one: in between, the time that a step leaves for its tokens only grows.
  void take_steps(double first, double last, std::int64_t steps, double seconds) {
    busy_until_ = std::max(told(first) + double(steps) * seconds, last + seconds);
  }

 private:
  double busy_until_ = 0;
};

}  // namespace engine

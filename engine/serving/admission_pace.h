// How fast a replica takes requests from its queue, for who has to tell how long one more would wait.
#pragma once

#include <cstdint>

namespace engine {

// The mean time between two that leave a queue in which others wait, smoothed. Several that leave in one step have no time
// between them, so the mean is that of all.
class AdmissionPace {
 public:
  void reset() { *this = {}; }
  // Somebody left the queue; whether others are left in it.
  void left(double now, bool others_wait) {
    if (waited_) gap_ += kNewest * (now - last_ - gap_);
    last_ = now;
    waited_ = others_wait;
  }
  double wait_behind(std::int64_t others) const { return double(others) * gap_; }

 private:
  static constexpr double kNewest = 1.0 / 16;  // weight of the newest time
  double gap_ = 0, last_ = 0;
  bool waited_ = false;  // others were left in the queue the last time
};

}  // namespace engine

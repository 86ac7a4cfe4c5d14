// How fast a replica takes requests from its queue, for who has to tell how long one more would wait.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace engine {

// The mean time between two that leave a queue in which others wait, smoothed. Several that leave in one step have no time
// between them, so the mean is that of all.
class AdmissionPace {
 public:
  void reset() { *this = {}; }
  // Somebody left the queue; whether others are left in it.
  void left(double now, bool others_wait) {
    if (waited_) {
      gap_ += kNewest * (now - last_ - gap_);
      square_ += kNewest * ((now - last_) * (now - last_) - square_);
    }
    last_ = now;
    waited_ = others_wait;
  }
  // One standard deviation above the mean, which every other request would miss.
  double wait_behind(std::int64_t others) const {
    const double variance = std::max(0.0, square_ - gap_ * gap_);
    return double(others) * gap_ + std::sqrt(double(others) * variance);
  }

 private:
  static constexpr double kNewest = 1.0 / 64;  // weight of the newest time
  double gap_ = 0, square_ = 0, last_ = 0;  // means of the time and of its square; the last moment
  bool waited_ = false;                     // others were left in the queue the last time
};

}  // namespace engine

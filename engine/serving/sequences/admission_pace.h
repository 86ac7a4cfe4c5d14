// How fast a replica takes requests from its queue, from which follows how long one more would wait.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "engine/serving/sequences/urgency_lists.h"

namespace engine {

// The mean time between two that leave a queue in which others wait, smoothed. Several that leave in one step have no time
// between them, so the mean is that of all.
class AdmissionPace {
 public:
  void reset() { *this = {}; }
  // A request left the queue; `others_wait`: there are more in it.
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

// The same by level of urgency. A waiting request is overtaken by all that come later and are more urgent, so the queue before it
// shrinks only as fast as requests of its own level leave: the pace of that level.
class AdmissionPaces {
 public:
  void reset() { levels_.fill({}); }
  // A request left the queue. `least_urgent`: level of the least urgent one that is still in it; -1: it is empty.
  void left(double now, std::int64_t level, std::int64_t least_urgent) {
    for (std::int64_t i = 0; i <= level; ++i) {
      levels_[std::size_t(i)].left(now, least_urgent >= i);
    }
  }
  // A level from which no request has left yet counts as no faster than those above it.
  double wait_behind(std::int64_t others, std::int64_t level) const {
    double wait = 0;
    for (std::int64_t i = 0; i <= level; ++i) {
      wait = std::max(wait, levels_[std::size_t(i)].wait_behind(others));
    }
    return wait;
  }

 private:
  std::array<AdmissionPace, UrgencyLists::kLast + 1> levels_;
};

}  // namespace engine

// The slow reference of the event queue and of the routers' index: look at every replica, every time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "engine/serving/figures/measurement.h"

namespace toys {

struct ReplicaEvent {
  double time = engine::kNever;
  bool work_ends = false;
};

// Of those at one moment, the first whose work ends, else the first.
inline std::size_t next_by_scan(const std::vector<ReplicaEvent>& events) {
  std::size_t next = 0;
  for (std::size_t i = 1; i < events.size(); ++i) {
    const double apart = events[i].time - events[next].time;
    const bool sooner = std::abs(apart) <= engine::kSameMoment
                            ? events[i].work_ends && !events[next].work_ends
                            : apart < 0;
    if (sooner) next = i;
  }
  return next;
}

inline double earliest_but_by_scan(const std::vector<ReplicaEvent>& events, std::size_t replica) {
  double earliest = engine::kNever;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (i != replica) earliest = std::min(earliest, events[i].time);
  }
  return earliest;
}

template <class Value>
std::size_t first_least_by_scan(const std::vector<Value>& values) {
  return std::size_t(std::min_element(values.begin(), values.end()) - values.begin());
}

}  // namespace toys

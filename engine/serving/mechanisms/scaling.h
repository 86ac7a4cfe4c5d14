// When the number of replicas of a pool may change with the load, and what that does. `fleet/scaler.h` says how many are wanted.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/serving/mechanisms/fleet.h"

namespace engine {

class Scaling {
 public:
  // True where some pool follows the load.
  bool start(Fleet& fleet);

  // When a scaler looks at the load, a timetable changes or a replica is warm, and what that does.
  double next() const;
  void act(double time);
  // Whether it is known how many replicas each pool that follows the load has.
  bool size_is_known(const MeasuredPart& part) const;

 private:
  Fleet* fleet_ = nullptr;
  std::vector<std::int64_t> routed_at_look_;  // by pool: `Pool::routed` when its scaler last looked
};

}  // namespace engine

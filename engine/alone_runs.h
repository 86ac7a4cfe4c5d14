// What points with two models on a device have found out of either model alone: the next points, which share the device in
// another way or with another model, find it again. It changes no result.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "engine/leaves/key.h"
#include "engine/outcome.h"
#include "engine/resources.h"
#include "engine/scenario.h"

namespace engine {

class AloneRuns {
 public:
  struct Run {
    Key key;  // of the model's scenario
    Outcome outcome;
    double work = 0;  // units, which count whether or not it runs again
  };

  // Served loads: a step is timed as soon as it is found. Not where rows of single requests are written, which are large, nor
  // where something was made in memory: that has no checksum to be known by again.
  static bool keeps(const Scenario& scenario, const Resources& resources);
  // Null: it is not known.
  const Run* find(Key key) const;
  void keep(Run run);

 private:
  // On its part of the devices and on all of them, at two points.
  std::array<Run, 4> runs_;
  std::size_t count_ = 0, next_ = 0;
};

}  // namespace engine

#include "engine/training/pipeline_waves.h"

#include <cmath>
#include <cstddef>

namespace engine {

void remember(StageTimes times, std::vector<double>& state) {
  state.clear();
  for (const std::vector<double>* values : times) {
    state.insert(state.end(), values->begin(), values->end());
  }
}

bool stands_as(const std::vector<double>& state, StageTimes times, double& passed) {
  if (state.empty()) return false;
  const double now = times.front()->front();
  passed = now - state.front();
  const double tolerance = 1e-12 * now;
  std::size_t place = 0;
  for (const std::vector<double>* values : times) {
    for (const double value : *values) {
      const double before = state[place++];
      // Beyond the ends of a pipeline there is nothing, then as now.
      if (!(std::abs(value - before - passed) <= tolerance) && value != before) return false;
    }
  }
  return true;
}

void move_on(StageTimes times, double passed) {
  for (std::vector<double>* values : times) {
    for (double& value : *values) value += passed;
  }
}

}  // namespace engine

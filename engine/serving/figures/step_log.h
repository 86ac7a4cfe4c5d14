// When replicas did what, for a trace of one point over time. It costs nothing where no trace is asked for.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/deployment_role.h"
#include "engine/model/batch_shape.h"
#include "engine/serving/sequences/stretch.h"

namespace engine {

// One step with prompts in it, or a stretch of decode steps.
struct LoggedWork {
  DeploymentRole role = DeploymentRole::main;
  std::int32_t replica = 0;
  double start = 0;
  double end = 0;
  BatchShape batch;  // of a step; of a stretch, only the tokens that its experts met
  Stretch stretch;   // of a stretch; one without steps: it is a step
  Pace pace = {};  // of the stretch, which does not refer to it: that of its lane has changed since
};

// The first `most` pieces of work to end.
struct StepLog {
  std::size_t most = 0;
  std::vector<LoggedWork> work;

  void add(const LoggedWork& done) {
    if (work.size() < most) work.push_back(done);
  }
};

}  // namespace engine

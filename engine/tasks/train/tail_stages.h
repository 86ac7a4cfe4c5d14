// The last pipeline stages on other devices than the first ones.
#pragma once

#include <optional>

#include "engine/deploy.h"
#include "engine/tasks/task_table.h"

namespace engine {

// One model, whatever its routers favour.
inline bool same_weights(ModelSpec one, const ModelSpec& other) {
  one.moe.skew = other.moe.skew;
  one.moe.drift = other.moe.drift;
  return one == other;
}

// The layout of all stages: those of the main deployment, and those of the tail.
Parallelism layout_of_all_stages(const Scenario& scenario);

// What contradicts the main deployment; both hold the same batch.
std::optional<Refusal> tail_problem(const Scenario& scenario);

// Devices that a deployment beside the main one adds.
double train_devices_beside(const Scenario& scenario, const Deployment& role);

struct TailStages {
  Deployment deployment;
  Deployed deployed;
};
// The tail has the main deployment's model.
std::optional<Refusal> deploy_tail(const TaskPoint& point, TailStages& tail);

}  // namespace engine

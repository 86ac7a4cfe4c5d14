// Figures of an iteration of reinforcement learning, once those of its optimizer steps are there.
#pragma once

#include <optional>

#include "engine/outcome.h"
#include "engine/tasks/task_table.h"
#include "engine/tasks/train/rollout.h"
#include "engine/training/train_step.h"

namespace engine {

// Samples of one iteration and the way of weights to where they are made.
struct SampledIteration {
  Rollout rollout;
  Seconds transfer;
};
std::optional<Refusal> sample(const TaskPoint& point, const TrainStepTime& step,
                              SampledIteration& sampled);

void report_rollout(const TaskPoint& point, const TrainStepTime& step,
                    const SampledIteration& sampled, Outcome& outcome);

}  // namespace engine

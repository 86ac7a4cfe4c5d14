// Figures of an iteration of reinforcement learning, once those of its optimizer steps are there.
#pragma once

#include <optional>

#include "engine/outcome.h"
#include "engine/tasks/task_table.h"
#include "engine/training/train_step.h"

namespace engine {

std::optional<Refusal> report_rollout(const TaskPoint& point, const TrainStepTime& step,
                                      Outcome& outcome);

}  // namespace engine

// Why a training step does not fit its devices, and what would help.
#pragma once

#include <optional>

#include "engine/base/refusal.h"
#include "engine/training/train_step.h"

namespace engine {

std::optional<Refusal> memory_problem(const TrainStepTime& step, const TrainSettings& train);

}  // namespace engine

// Whether a model can be trained as asked.
#pragma once

#include <optional>

#include "engine/base/refusal.h"
#include "engine/model/model_spec.h"
#include "engine/model/parallelism.h"
#include "engine/training/settings/train_settings.h"

namespace engine {

// Why a model cannot be trained like this, or nothing.
std::optional<Refusal> train_problem(const ModelSpec& model, const Parallelism& parallel,
                                     const TrainSettings& train);

}  // namespace engine

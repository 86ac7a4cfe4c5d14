// How long a step waits for its sequences.
#pragma once

#include "engine/step/kernel_row.h"
#include "engine/training/settings/train_settings.h"

namespace engine {

// Workers of the host prepare the sequences of a step while the one before it trains, which takes `step`.
Seconds loading_wait(const TrainSettings& train, std::int64_t replicas, Seconds step);

KernelRow loading_row(Seconds wait);

}  // namespace engine

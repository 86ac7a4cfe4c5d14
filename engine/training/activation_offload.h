// Activations that wait for their backward pass in the host's memory.
#pragma once

#include "engine/step/kernel_row.h"
#include "engine/step/step_time.h"
#include "engine/training/settings/train_settings.h"

namespace engine {

// The way of one pass's activations through one chunk. Rows say how much of each copy passes beside the work.
struct OffloadCopies {
  KernelRow out, back;
};

// The passes that activations leave and come back in, and between how many layers copies are spread.
struct OffloadWork {
  Seconds forward, backward;
  double layers = 1;
};
OffloadCopies offload_copies(double bytes, const OffloadWork& beside, const TrainSettings& train,
                             const StepContext& context);

}  // namespace engine

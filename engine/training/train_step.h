// One optimizer step: micro-batches through the pipeline, gradients summed over replicas, weights updated.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/base/refusal.h"
#include "engine/base/units.h"
#include "engine/step/breakdown.h"
#include "engine/step/step_time.h"
#include "engine/training/train_memory.h"
#include "engine/training/train_settings.h"

namespace engine {

// Seconds of the busiest stage's device, over the whole step.
struct TrainStepTime {
  Seconds iteration;
  Seconds forward;
  Seconds backward;  // recomputation included
  Seconds recompute;
  Seconds optimizer;
  Seconds bubble;  // stages wait for one another
  // Gradients and weights that travel between replicas: what the step waits for, and what passes beside its work.
  Seconds exposed;
  Seconds hidden;
  TrainMemory memory;
  std::int64_t peak_stage = 0;
  DeviceTime device;  // kernels and collectives of the busiest stage
  Savings saved;
  Flops model_flops;   // of the whole step: what the model asks for
  Flops device_flops;  // on all devices: with what is computed again
};

// Why a model cannot be trained like this, or nothing.
std::optional<Refusal> train_problem(const ModelSpec& model, const Parallelism& parallel,
                                     const TrainSettings& train);

// `train_problem` found nothing. Rows of the kernels table, of the busiest stage, go to `rows`.
TrainStepTime train_step_time(const StepContext& context, const TrainSettings& train,
                              Breakdown& rows);

}  // namespace engine

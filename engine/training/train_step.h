// One optimizer step: micro-batches through the pipeline, gradients summed over replicas, weights updated.
#pragma once

#include <cstdint>

#include "engine/base/units.h"
#include "engine/step/breakdown.h"
#include "engine/step/step_time.h"
#include "engine/training/pipeline/stage_pools.h"
#include "engine/training/settings/train_settings.h"
#include "engine/training/train_memory.h"
#include "engine/training/train_scratch.h"

namespace engine {

// Seconds of the busiest stage's device, over the whole step.
struct TrainStepTime {
  Seconds iteration;
  Seconds forward;
  Seconds backward;  // recomputation included
  Seconds recompute;
  Seconds optimizer;
  Seconds bubble;         // stages wait for one another
  Seconds forward_alone;  // all micro-batches forward through all stages, and nothing else
  // Gradients and weights that travel between replicas: what the step waits for, and what passes beside its work.
  Seconds exposed;
  Seconds hidden;
  Seconds host;        // passes wait for launches
  Seconds gaps;        // between kernels
  Seconds loading;     // the step waits for its sequences; part of host
  Seconds copied;      // passes wait for activations on their way to and from the host
  TrainMemory memory;  // where least is free
  Bytes capacity;      // of the devices of that stage
  std::int64_t peak_stage = 0;
  double trained_weights = 0;  // of the whole model
  Bytes checkpoint;            // trained weights and optimizer states of the whole job
  DeviceTime device;           // kernels and collectives of the busiest stage
  Savings saved;
  Flops model_flops;   // of the whole step: what the model asks for
  Flops device_flops;  // on all devices: with what is computed again
};

// `train_problem` found nothing. Rows of the kernels table, of the busiest stage, go to `rows`. A step that does not fit in
// the device's memory has no rows and no times.
TrainStepTime train_step_time(const StagePools& pools, const TrainSettings& train,
                              TrainScratch& scratch, Breakdown& rows);

}  // namespace engine

// What training points use one after another: times of kernels that they share are worked out once.
#pragma once

#include "engine/step/call_rows.h"
#include "engine/step/step_inputs.h"
#include "engine/training/pipeline_schedule.h"
#include "engine/training/train_settings.h"

namespace engine {

// Calls of the passes of a micro-batch. Strategies that differ in stages, replicas, schedules, recomputation or what is
// shared out have them in common.
class TrainScratch {
 public:
  CallRows forward, inputs, weights;
  std::vector<PipelinePass>* passes =
      nullptr;  // where the passes of a point are written down; null: nowhere

  // Forgets what is of other passes than these.
  void begin(const StepContext& context, const TrainSettings& train);

 private:
  StepInputs of_;
  TrainSettings trained_as_;
};

}  // namespace engine

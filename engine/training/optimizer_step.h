// The optimizer's update of the weights, on the device or on its host.
#pragma once

#include "engine/base/units.h"
#include "engine/step/breakdown.h"
#include "engine/step/step_time.h"
#include "engine/training/train_settings.h"

namespace engine {

// How many weights one device updates, and how long its last backward pass takes, beside which gradients may leave.
struct Update {
  double weights = 0;
  Seconds backward;
};
Seconds optimizer_time(const Update& update, const TrainSettings& train, const StepContext& context,
                       Breakdown& rows);

}  // namespace engine

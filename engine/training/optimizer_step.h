// The optimizer's update of the weights, on the device or on its host.
#pragma once

#include "engine/base/units.h"
#include "engine/model/model_ops.h"
#include "engine/step/breakdown.h"
#include "engine/step/step_time.h"
#include "engine/training/train_settings.h"

namespace engine {

// How many weights one device updates, how long its last backward pass takes, beside which gradients may leave, and what the
// rule multiplies.
struct Update {
  double weights = 0;
  Seconds backward;
  OpList products;
};
Seconds optimizer_time(const Update& update, const TrainSettings& train, const StepContext& context,
                       Breakdown& rows);

}  // namespace engine

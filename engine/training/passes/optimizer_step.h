// The optimizer's update of the weights, on the device or on its host.
#pragma once

#include "engine/base/units.h"
#include "engine/model/model_ops.h"
#include "engine/step/breakdown.h"
#include "engine/step/step_time.h"
#include "engine/training/settings/train_settings.h"

namespace engine {

// How many weights one device updates, how long a backward pass of its takes and sums with other replicas behind it, beside which
// gradients may leave for the host, from how many passes they leave, and what the rule multiplies.
struct Update {
  double weights = 0;
  Seconds backward;
  double passes = 1;
  OpList products;
};
Seconds optimizer_time(const Update& update, const TrainSettings& train, const StepContext& context,
                       Breakdown& rows);

}  // namespace engine

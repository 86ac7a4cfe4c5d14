// What step times follow from besides the batch, as a value that can be kept and compared.
#pragma once

#include <string>

#include "engine/step/step_time.h"

namespace engine {

// Made whole from a context, so that nothing in it can be forgotten: equal inputs, equal step times.
struct StepInputs {
  Device device;
  Fabric fabric;
  ModelSpec model;
  ModelShard shard;  // of the model above, which it does not point at
  HostSettings host;
  const Calibration* calibration = nullptr;
  PowerLimit power_limit = PowerLimit::each_kernel;
  double links_longer = 1;
  std::string checksum;  // of the calibration: another one may come to lie at the same address

  StepInputs() = default;
  explicit StepInputs(const StepContext& context);

  // A calibration that was made in memory has no checksum to be known by again.
  bool recognisable() const { return calibration == nullptr || !checksum.empty(); }

  bool operator==(const StepInputs&) const = default;
};

}  // namespace engine

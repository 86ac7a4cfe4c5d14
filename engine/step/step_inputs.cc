#include "engine/step/step_inputs.h"

namespace engine {

StepInputs::StepInputs(const StepContext& context) {
  // Names every member: a new one does not compile until it is looked at here. What work is charged to changes no time.
  const auto& [its_device, its_fabric, its_shard, its_host, its_calibration, work, limit,
               slower_links] = context;
  static_cast<void>(work);
  device = its_device;
  // How much fits has no part in how long a step takes: a part of a device's memory has the step times of all of it.
  device.memory_capacity = Bytes{0};
  fabric = its_fabric;
  model = *its_shard.model;
  shard = its_shard;
  shard.model = nullptr;
  host = its_host;
  calibration = its_calibration;
  power_limit = limit;
  links_longer = slower_links;
  if (calibration != nullptr) checksum = calibration->checksum;
}

}  // namespace engine

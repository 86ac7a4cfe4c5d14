// The arithmetic that a device could do in the formats of a deployment.
#pragma once

#include "engine/hardware/device.h"
#include "engine/model/parallelism.h"

namespace engine {

// What utilizations are of: the peak of products, or that of attention where it is higher.
FlopsPerSecond peak_in_use(const Device& device, const Quantization& quant);

}  // namespace engine

// Cycles, energy by level and area of a device whose matrix products a grid of multipliers does.
#pragma once

#include "engine/hardware/device.h"
#include "engine/model/model_ops.h"
#include "engine/outcome.h"

namespace engine {

// Reports what the operations of a step take on the grids of one device.
void report_array(const OpList& ops, const Device& device, Metrics& metrics);

}  // namespace engine

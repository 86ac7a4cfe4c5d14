// How much of a link do large sends between two devices reach?
#pragma once

#include <cstdint>

#include "engine/calibration/calibration.h"
#include "engine/hardware/cluster.h"
#include "engine/hardware/device.h"

namespace engine {

enum class SendWay : std::uint8_t { inside_node, between_nodes };

// The rate of sends as large as the largest that were measured, over that of the link. 1: by the data sheet.
double share_of_sends(SendWay way, const Fabric& fabric, const Device& device,
                      const Calibration* calibration);

}  // namespace engine

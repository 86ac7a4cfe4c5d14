// What keeps a deployment from working that can be said before anything is timed: devices, links, formats and
// how the model is split. Memory is looked at later (engine/deploy.h).
#pragma once

#include <cstdint>
#include <optional>

#include "engine/base/refusal.h"
#include "engine/deployment.h"
#include "engine/hardware/cluster.h"

namespace engine {

// Devices of `copies` of the layout.
inline double devices_of(const Deployment& deployment, double copies) {
  return double(deployment.parallel.devices()) * copies;
}

// Why a device cannot do products in these formats, or nothing.
std::optional<Refusal> arithmetic_problem(const Device& device, const Quantization& quant);

// The first reason why so many copies of a deployment cannot work, or nothing.
std::optional<Refusal> feasibility_problem(const Deployment& deployment, const Fabric& fabric,
                                           double copies);

// Sequences may not outgrow what the model is made for; `what` names the setting that says how long they are.
std::optional<Refusal> too_long(const char* what, std::int64_t tokens, const ModelSpec& model);

}  // namespace engine

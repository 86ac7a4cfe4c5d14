// Which groups of devices must talk, and whether links join them.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/base/refusal.h"
#include "engine/hardware/cluster.h"
#include "engine/model/parallelism.h"

namespace engine {

// Neighbouring devices that send to one another, and how a message names them.
struct TalkingDevices {
  std::int64_t devices = 1;
  const char* who = "";
};

// Why devices that must talk cannot, or nothing: a group of them, or all that a served model needs.
std::optional<Refusal> links_problem(const TalkingDevices& group, const Fabric& fabric);
std::optional<Refusal> links_problem(const Parallelism& parallel, const Fabric& fabric);

}  // namespace engine

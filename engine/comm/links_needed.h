// Which groups of devices must talk, and whether links join them.
#pragma once

#include <optional>

#include "engine/base/refusal.h"
#include "engine/hardware/cluster.h"
#include "engine/model/parallelism.h"

namespace engine {

// Why devices that must talk cannot, or nothing.
std::optional<Refusal> links_problem(const Parallelism& parallel, const Fabric& fabric);

}  // namespace engine

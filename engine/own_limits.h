// What does an engine set by itself where it is told nothing?
#pragma once

#include <cstdint>
#include <memory>

#include "engine/scenario.h"

namespace engine {

// Most tokens and sequences of a step.
struct StepLimits {
  std::int64_t tokens = 1;
  std::int64_t sequences = 1;
};

// By the device that vLLM finds.
StepLimits own_limits(const Device& device);

// Most tokens of prompts in a step of one replica, and the share of the device's memory for weights and KV cache.
struct SglangLimits {
  std::int64_t chunk = 1;
  double memory = 1;
};

// By the device that SGLang finds, and the layout that it is told.
SglangLimits sglang_limits(const Device& device, const Parallelism& parallel);

// The scenario with these limits in every deployment that leaves them to its engine. `filled` keeps it, where there is such a one:
// on the heap, since a scenario is half as large as a core's first cache, and most points need no second one.
const Scenario& with_own_limits(const Scenario& scenario, std::unique_ptr<Scenario>& filled);

}  // namespace engine

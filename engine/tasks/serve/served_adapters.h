// Low-rank adapters of a point: what they take of a deployment's memory, how they get there, and what they cannot be.
#pragma once

#include <optional>

#include "engine/base/refusal.h"
#include "engine/scenario.h"
#include "engine/serving/replica/adapter_cache.h"
#include "engine/step/step_time.h"

namespace engine {

// That lie beside the model on a device.
Bytes adapter_memory(const Scenario& scenario, const LoraSettings& lora, const ModelShard& shard);

// Where requests ask for adapters and not all of them are kept.
AdapterCache::Setup adapters_of(const Load& load, const LoraSettings& lora,
                                const StepContext& context);

std::optional<Refusal> adapter_link_problem(const LoraSettings& lora, const Fabric& fabric);
// Prompts are read with the adapters that answers are written with.
std::optional<Refusal> reader_adapter_problem(const Scenario& scenario, const Fabric& fabric);

}  // namespace engine

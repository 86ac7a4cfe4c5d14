// Served replicas that share experts step together: how their pool says so, and what cannot be combined with it.
#pragma once

#include <optional>

#include "engine/base/refusal.h"
#include "engine/deployment.h"
#include "engine/step/step_time.h"

namespace engine {

// The same, of replicas that step together where several of them share experts.
ModelShard in_lockstep(ModelShard shard);

// The same with another shard, which outlives it.
StepContext with_shard(const StepContext& context, const ModelShard& shard);

// Why replicas of this deployment cannot step together though they share experts, or nothing.
std::optional<Refusal> lockstep_refusal(const Deployment& on);

}  // namespace engine

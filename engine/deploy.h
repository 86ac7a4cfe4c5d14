// A deployment made ready for work: its links, its share of the model, its kernels' times, its memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/base/refusal.h"
#include "engine/base/units.h"
#include "engine/base/work_meter.h"
#include "engine/calibration/calibrations.h"
#include "engine/deployment.h"
#include "engine/hardware/cluster.h"
#include "engine/memory/footprint.h"
#include "engine/model/model_ops.h"
#include "engine/scenario.h"
#include "engine/step/step_time.h"

namespace engine {

// The tokens and sequences that are in memory at once, and the largest step.
struct MemoryDemand {
  std::int64_t sequences = 1;  // of a batch
  std::int64_t batches = 1;    // at the same time: one a stage of a pipeline
  std::int64_t context = 1;
  std::int64_t step_tokens = 1;
  std::int64_t sampled = 1;
  Bytes per_logit{4};  // an engine that serves sets memory aside for the sampler's worst case
  // Tokens that a step has of each sequence, up to `most_tokens` in all; 0: the number of tokens does not grow with sequences.
  std::int64_t tokens_each = 0;
  std::int64_t most_tokens = 0;  // 0: no limit
};

// What lies in a deployment's memory besides its own model: a model that proposes tokens for it.
struct Guest {
  Bytes weights{0};
  const ModelShard* shard = nullptr;  // keeps KV of the same sequences; null: there is none
};

// The deployment outlives it.
struct Deployed {
  const Deployment* spec = nullptr;
  Fabric fabric;
  ModelShard shard;
  const Calibration* calibration = nullptr;  // null: rooflines
  Guest guest;
  std::int64_t states = 1;  // that a sequence has of a scan: one for each token that may not hold

  // KV of one sequence of `context` tokens on the fullest device.
  Bytes kv_of(double context) const {
    const Bytes own = kv_in(shard, context);
    return guest.shard == nullptr ? own : own + kv_in(*guest.shard, context);
  }
  StepContext context(WorkMeter& work) const {
    return {spec->device, fabric, shard, spec->host, calibration, &work};
  }

 private:
  Bytes kv_in(const ModelShard& part, double context) const {
    const Bytes one = kv_bytes(part, context);
    return states > 1 ? one + kv_bytes(part, 0) * double(states - 1) : one;
  }
};

// Lays the model out over `copies` of the layout; or says why that cannot be.
std::optional<Refusal> deploy(const Deployment& deployment, const CalibrationSettings& calibration,
                              const Calibrations& calibrations, double copies, Deployed& deployed);

// What lies in the memory of its fullest device. Whether all of it fits: `memory_problem`.
Footprint footprint_of(const Deployed& deployed, const MemoryDemand& demand);
std::optional<Refusal> memory_problem(const Deployed& deployed, const Footprint& footprint,
                                      const MemoryDemand& demand);

// The same reason, of a deployment beside the main one.
Refusal in_role(std::string_view role, Refusal refusal);

// Why a role does not fit its cluster, with what of its layout it took over.
Refusal in_layout_of(const Deployment& main, std::string_view role, const Deployment& on,
                     Refusal refusal);

// Degrees that a role has in common with the main deployment, whose they are unless the role states its own: what to say after "too many
// devices". Nothing where it has none.
std::string taken_over(std::string_view role, const Parallelism& of_role,
                       const Parallelism& of_main);

}  // namespace engine

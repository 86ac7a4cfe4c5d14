// What a point could serve, roughly and at once: the scale that relative loads and capacity searches
// start from.
#pragma once

#include "engine/serving/serving_settings.h"
#include "engine/step/step_time.h"
#include "engine/workload/lengths.h"

namespace engine {

struct CapacityEstimate {
  double batch = 1;     // decodes that fit in blocks and seats, per replica
  double requests = 0;  // a second, all replicas
};

// A replica that is always full: each request costs its prompt and its share of the decode steps of a
// full batch. Queueing, preemption and prefix hits are left out.
CapacityEstimate capacity_estimate(const ServingSettings& settings, const MeanLengths& lengths,
                                   std::int64_t kv_blocks, std::int64_t replicas,
                                   const StepContext& context);

}  // namespace engine

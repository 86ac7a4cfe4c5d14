// In which order a stage does its passes, and which of them it holds and has nothing beside.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/training/pipeline/pipeline_schedule.h"

namespace engine {

enum class StageWork : std::uint8_t {
  forward,
  backward,  // gradients of weights included
  inputs,    // gradients of weights are put off
  weights,   // the oldest that were put off
  pair,      // a forward pass beside a backward pass
};

// Which chunk a pass is of, and for which micro-batch.
struct PassPlace {
  std::int64_t chunk = 0;
  std::int64_t micro_batch = 0;
};
struct StagePass {
  StageWork work = StageWork::forward;
  PassPlace forward, backward;
};
std::vector<StagePass> order_of(const Pipeline& pipeline, std::int64_t stage);

}  // namespace engine

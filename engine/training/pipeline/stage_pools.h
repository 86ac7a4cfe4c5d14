// Which devices the stages of a pipeline lie on: all on the main ones, or the last ones on others.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/step/step_time.h"

namespace engine {

struct StagePools {
  const StepContext& main;
  const StepContext* tail = nullptr;  // of the last stages; null: all stages are alike

  static std::int64_t stages_on(const StepContext& devices) { return devices.shard.parallel.pp; }
  std::int64_t tail_stages() const { return tail == nullptr ? 0 : stages_on(*tail); }
  std::int64_t stages() const { return stages_on(main) + tail_stages(); }

  bool in_tail(std::int64_t stage) const { return stage >= stages_on(main); }
  const StepContext& of(std::int64_t stage) const { return in_tail(stage) ? *tail : main; }
};

}  // namespace engine

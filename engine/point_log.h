// What a point did when, step by step or pass by pass: written down beside its outcome, of which it changes nothing, to be
// looked at as a trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/deployment_role.h"
#include "engine/base/units.h"
#include "engine/model/batch_shape.h"
#include "engine/step/kernel_row.h"
#include "engine/training/pipeline/pipeline_schedule.h"

namespace engine {

// One step of a replica that serves.
struct TracedStep {
  DeploymentRole role = DeploymentRole::main;
  std::int32_t replica = 0;
  Seconds start, end;
  BatchShape batch;
  // Kernels of one device in one such step by itself. The step was timed by tables, which may differ from this by their interpolation.
  std::vector<KernelRow> kernels;
  Joules energy;  // of one device; 0 where it states no powers
};

struct PointLog {
  // How many steps are wanted, from the first on, and how many of these with their kernels.
  std::size_t most_steps = 0;
  std::size_t most_with_kernels = 0;

  std::vector<TracedStep> steps;     // task serve
  std::vector<PipelinePass> passes;  // task train
};

}  // namespace engine

// A copy between a device and its host.
#pragma once

#include "engine/step/kernel_row.h"
#include "engine/step/step_time.h"

namespace engine {

struct HostCopy {
  OpName name;
  CopyPath path;
  Phase phase;
};
KernelRow copy_row(const HostCopy& copy, double bytes, const StepContext& context);

}  // namespace engine

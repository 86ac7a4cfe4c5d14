#include "engine/training/passes/host_copy.h"

#include <vector>

namespace engine {

KernelRow copy_row(const HostCopy& copy, double bytes, const StepContext& context) {
  OpList ops;
  const bool out = copy.path == CopyPath::device_to_host;
  ops.add(copy.name, out ? Family::copy_d2h : Family::copy_h2d, 1,
          Copy{.bytes = bytes, .path = copy.path});
  std::vector<KernelRow> made;
  device_time(ops, context, copy.phase, &made);
  return made.front();
}

}  // namespace engine

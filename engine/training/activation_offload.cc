#include "engine/training/activation_offload.h"

#include <algorithm>

#include "engine/step/overlap.h"
#include "engine/training/passes/host_copy.h"

namespace engine {
namespace {

// Copies take no multiprocessors. Copies of the first layer that comes back, and of the last one that leaves, have no other layer's work
// beside them.
void go_beside(Seconds work, double layers, const Device& device, KernelRow& row) {
  const Seconds beside = row.work.time * (1 - 1 / layers);
  row.work.hidden = std::min(beside, work);
  draw_beside(row.work.hidden, device, row.work.energy);
  row.work.low -= row.work.hidden * (row.work.low / row.work.time);
  row.work.high -= row.work.hidden * (row.work.high / row.work.time);
}

}  // namespace

OffloadCopies offload_copies(double bytes, const OffloadWork& beside, const TrainSettings& train,
                             const StepContext& context) {
  OffloadCopies copies{
      .out = copy_row({OpName::activation_offload, CopyPath::device_to_host, Phase::forward}, bytes,
                      context),
      .back = copy_row({OpName::activation_upload, CopyPath::host_to_device, Phase::backward},
                       bytes, context)};
  if (!train.overlap) return copies;
  const double layers = std::max(1.0, beside.layers);
  go_beside(beside.forward, layers, context.device, copies.out);
  go_beside(beside.backward, layers, context.device, copies.back);
  return copies;
}

}  // namespace engine

#include "engine/training/optimizer_step.h"

#include <algorithm>
#include <vector>

#include "engine/step/pass_clock.h"
#include "engine/training/host_copy.h"
#include "engine/training/state_bytes.h"

namespace engine {
namespace {

// A fused AdamW (PyTorch 2.11 on an H200, 0.4 to 8 billion weights) takes as long as so many plain passes over what it
// reads and writes.
constexpr double kOptimizerPasses = 1.72;

Seconds on_the_device(const Update& update, const StateBytes& bytes, const StepContext& context,
                      Breakdown& rows) {
  OpList ops = update.products;
  ops.add(OpName::optimizer, Family::residual, 1,
          Elementwise{.rows = 1,
                      .resident_bytes = 0,
                      .cold_bytes = kOptimizerPasses * update.weights * optimizer_traffic(bytes),
                      .flops = 0});
  std::vector<KernelRow> made;
  DeviceTime time = device_time(ops, context, Phase::optimizer, &made);
  const double clock = pass_slowdown({&time}, Seconds{0}, context.device);
  slow_down(clock, context.device, time);
  for (KernelRow& row : made) {
    slow_down(clock, context.device, row);
    rows.add(row);
  }
  return time.total();
}

// Gradients go to the host while the last backward pass makes them, its processors update the weights, which come back
// (ZeRO-Offload: Ren et al., 2021). A processor's update is bound by its memory.
Seconds on_the_host(const Update& update, const StateBytes& bytes, const TrainSettings& train,
                    const StepContext& context, Breakdown& rows) {
  if (update.weights <= 0) return Seconds{0};
  KernelRow out = copy_row({OpName::gradient_offload, CopyPath::device_to_host, Phase::optimizer},
                           update.weights * bytes.gradients, context);
  if (train.overlap) out.work.hidden = std::min(out.work.time, update.backward);
  const KernelRow back =
      copy_row({OpName::weight_upload, CopyPath::host_to_device, Phase::optimizer},
               update.weights * bytes.weights, context);
  const double moved = update.weights * optimizer_traffic(bytes);
  const Seconds working{moved / train.host_memory_bandwidth.value};
  rows.add(out);
  rows.add(
      {.phase = Phase::optimizer,
       .op = OpName::optimizer,
       .family = Family::host,
       .bound = Bound::host,
       .work = {
           .calls = 1, .time = working, .low = working, .high = working, .bytes = Bytes{moved}}});
  rows.add(back);
  return out.work.exposed() + working + back.work.exposed();
}

}  // namespace

Seconds optimizer_time(const Update& update, const TrainSettings& train, const StepContext& context,
                       Breakdown& rows) {
  const StateBytes bytes = state_bytes(train);
  return train.offload_optimizer ? on_the_host(update, bytes, train, context, rows)
                                 : on_the_device(update, bytes, context, rows);
}

}  // namespace engine

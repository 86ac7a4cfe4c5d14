#include "engine/training/passes/optimizer_step.h"

#include <algorithm>
#include <vector>

#include "engine/step/overlap.h"
#include "engine/step/pass_clock.h"
#include "engine/training/passes/host_copy.h"
#include "engine/training/passes/state_bytes.h"
#include "engine/training/pipeline/stages.h"

namespace engine {
namespace {

// How many plain passes over what it reads and writes a fused AdamW takes (PyTorch 2.11 on an H200, 0.4 to 8 billion weights).
constexpr double kOptimizerPasses = 1.72;

Seconds on_the_device(const Update& update, const StateBytes& bytes, const StepContext& context,
                      Breakdown& rows) {
  // One by one: a list has room for many more, and to copy all of that would take longer than to time them.
  OpList ops;
  for (const PlannedOp& product : update.products) ops.add(product);
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

KernelRow host_row(OpName name, double bytes, const TrainSettings& train) {
  const Seconds time{bytes / train.host_memory_bandwidth.value};
  return {.phase = Phase::optimizer,
          .op = name,
          .family = Family::host,
          .bound = Bound::host,
          .work = {.calls = 1, .time = time, .low = time, .high = time, .bytes = Bytes{bytes}}};
}

// Gradients go to the host while a backward pass makes them, where processors add them to those of earlier passes, update the
// weights after the last one, and send these back (ZeRO-Offload: Ren et al., 2021). Both are bound by the host's memory.
Seconds on_the_host(const Update& update, const StateBytes& bytes, const TrainSettings& train,
                    const StepContext& context, Breakdown& rows) {
  if (update.weights <= 0) return Seconds{0};
  const double gradients = update.weights * bytes.gradients;
  KernelRow out = copy_row({OpName::gradient_offload, CopyPath::device_to_host, Phase::optimizer},
                           gradients, context);
  KernelRow sum = host_row(OpName::gradient_sum, 3 * gradients, train);
  if (train.overlap) {
    out.work.hidden = std::min(out.work.time, update.backward);
    draw_beside(out.work.hidden, context.device, out.work.energy);
    sum.work.hidden = std::min(sum.work.time, std::max(out.work.time, update.backward));
  }
  const KernelRow step =
      host_row(OpName::optimizer, update.weights * optimizer_traffic(bytes), train);
  const KernelRow back =
      copy_row({OpName::weight_upload, CopyPath::host_to_device, Phase::optimizer},
               update.weights * bytes.weights, context);
  rows.add(out, update.passes);
  if (update.passes > 1) rows.add(sum, update.passes - 1);
  rows.add(step);
  rows.add(back);
  return out.work.exposed() * update.passes + sum.work.exposed() * (update.passes - 1) +
         step.work.exposed() + back.work.exposed();
}

}  // namespace

Seconds optimizer_time(const Update& update, const TrainSettings& train, const StepContext& context,
                       Breakdown& rows) {
  const StateBytes bytes = state_bytes(train, trains_wide(context.shard));
  return train.offload_optimizer ? on_the_host(update, bytes, train, context, rows)
                                 : on_the_device(update, bytes, context, rows);
}

}  // namespace engine

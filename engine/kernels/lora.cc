#include <algorithm>

#include "engine/calibration/parameter_set.h"
#include "engine/kernels/form.h"
#include "engine/kernels/gemm.h"
#include "engine/kernels/kernel_models.h"

namespace engine {
namespace {

// Of two kernels in Triton on an H200, fitted to 160 calls (specs/calibration/h200-sxm/lora.csv) as shares of what the
// device's file states: such kernels hide little behind anything else, so the parts add up.
constexpr double kRowsOfTile =
    16;  // an adapter with fewer tokens has a tile of its own all the same
constexpr double kArithmetic = 10.8;  // narrow tiles take this many times what the peak would
constexpr double kActivations = 1.8;  // tokens are gathered by adapter, not streamed
constexpr Seconds kEachInput{1.3e-6 / 4096};  // a block walks along the input of its adapter
constexpr double kLow = 0.8,
                 kHigh = 1.25;  // nine calls in ten, those of a product left out of the fit too

// What the fit has seen.
bool like_measured(const Lora& op, ParameterSet generation) {
  return generation == ParameterSet::hopper && op.tokens <= 2048 && op.adapters <= 256 &&
         op.rank >= 16 && op.rank <= 64 && op.input >= 4096 && op.input <= 14336 &&
         op.output >= 4096 && op.output <= 28672;
}

}  // namespace

// Two grouped products, input to rank and rank to output, each adapter's tokens together.
KernelTime time_of(const Lora& op, const KernelContext& context) {
  const Device& device = context.device;
  const double rank = double(op.rank), input = double(op.input), output = double(op.output);
  const double adapters = std::max(1.0, std::min(op.adapters, op.tokens));
  const Bytes weights{adapters * rank * (input + output) * bytes_of(op.weights)};
  // The output is read and written: the update is added to a projection's result.
  const Bytes activations{op.tokens * (input + 2 * output) * 2};
  const double rows = std::max(op.tokens, kRowsOfTile * adapters);
  const FlopsPerSecond peak = matrix_peak(device, Dtype::bf16);
  const Flops flops{2 * op.tokens * rank * (input + output)};
  const Bytes bytes = weights + activations;
  const ParameterSet generation = choose_set(device);
  if (context.calibration == nullptr || generation == ParameterSet::none) {
    return roofline_time({.compute = flops / peak,
                          .memory = bytes / device.memory_bandwidth,
                          .launch = device.launch_latency,
                          .flops = flops,
                          .bytes = bytes},
                         weights.value, peak, device);
  }
  KernelTime time{.compute = Flops{2 * rows * rank * (input + output)} * kArithmetic / peak,
                  .memory = (weights + activations * kActivations) / device.memory_bandwidth,
                  .launch = device.launch_latency * 2 + kEachInput * input,
                  .flops = flops,
                  .bytes = bytes,
                  .tier = Tier::transfer,
                  .extrapolated = !like_measured(op, generation),
                  .low = kLow,
                  .high = kHigh};
  time.time = time.launch + time.compute + time.memory;
  time.saved[Bound::compute] = time.compute;
  time.saved[Bound::memory] = time.memory;
  time.saved[Bound::launch] = time.launch;
  time.least = std::max(weights / device.memory_bandwidth, time.flops / peak);
  return time;
}

}  // namespace engine

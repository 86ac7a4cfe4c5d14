#include "engine/kernels/form.h"
#include "engine/kernels/gemm.h"
#include "engine/kernels/kernel_models.h"
#include "engine/kernels/traffic.h"

namespace engine {

// Two grouped products, input to rank and rank to output, each adapter's tokens together.
KernelTime time_of(const Lora& op, const KernelContext& context) {
  const Device& device = context.device;
  const double rank = double(op.rank), input = double(op.input), output = double(op.output);
  const double adapters = std::max(1.0, std::min(op.adapters, op.tokens));
  const double weights = adapters * rank * (input + output) * bytes_of(op.weights);
  // The output is read and written: the update is added to a projection's result.
  const double activations = op.tokens * (input + 2 * rank + 2 * output) * 2;
  const TrafficTime traffic = traffic_time(device, weights, activations);
  const double rows = op.tokens / adapters, processors = double(device.multiprocessors);
  const double occupied = occupied_flops(rows, rank, input, adapters, processors) +
                          occupied_flops(rows, output, rank, adapters, processors);
  const FlopsPerSecond peak = matrix_peak(device, Dtype::bf16);
  return roofline_time({.compute = Flops{occupied} / peak,
                        .memory = traffic.memory,
                        .l2 = traffic.l2,
                        .launch = device.launch_latency * 2,
                        .flops = Flops{2 * op.tokens * rank * (input + output)},
                        .bytes = Bytes{weights + activations}},
                       weights, peak, device);
}

}  // namespace engine

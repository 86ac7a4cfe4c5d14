#include "engine/kernels/form.h"
#include "engine/kernels/recurrent.h"
#include "engine/kernels/traffic.h"

namespace engine {

// Within a chunk tokens meet pairwise, as in attention; between chunks they meet through the state.
KernelTime scan_time(const Scan& op, const Device& device) {
  const double heads = double(op.heads), dim = double(op.head_dim), state = double(op.state);
  const double per_sequence = op.tokens / double(op.sequences);
  const double chunk = std::min(double(op.chunk), per_sequence);
  // Scores and their product with the values in the chunk; update and read of the state.
  const double flops_per_token = heads * (chunk * (state + dim) + 4 * dim * state);
  // The state is kept in 32 bits, read and written once a step.
  const double states = double(op.sequences) * heads * dim * state * 4 * 2;
  const double activations = op.tokens * heads * (2 * dim + 2 * state) * 2;
  const TrafficTime traffic = traffic_time(device, states, activations);
  const Flops work{op.tokens * flops_per_token};
  const FlopsPerSecond peak = matrix_peak(device, Dtype::bf16);
  return roofline_time({.compute = work / peak,
                        .memory = traffic.memory,
                        .l2 = traffic.l2,
                        .launch = device.launch_latency,
                        .flops = work,
                        .bytes = Bytes{states + activations}},
                       states, peak, device);
}

}  // namespace engine

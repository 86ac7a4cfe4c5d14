// The roofline of an op that counts its work.
#include "engine/kernels/form.h"
#include "engine/kernels/kernel_models.h"
#include "engine/kernels/traffic.h"

namespace engine {

KernelTime counted_time(const OpCounts& counts, const Device& device) {
  const TrafficTime traffic = traffic_time(device, counts.cold_bytes, counts.resident_bytes);
  KernelTime time{.memory = traffic.memory / counts.of_bandwidth,
                  .l2 = traffic.l2 / counts.of_bandwidth,
                  .launch = device.launch_latency * counts.kernels,
                  .flops = Flops{counts.flops},
                  .bytes = Bytes{counts.cold_bytes + counts.resident_bytes}};
  const FlopsPerSecond peak = counts.unit == OpCounts::Unit::matrix
                                  ? matrix_peak(device, Dtype::bf16)
                                  : device.vector_peak * device.on_chip_scale();
  // A device file without such a rate is charged for traffic only.
  if (peak.value > 0) time.compute = time.flops / (peak * counts.of_peak);
  if (device.clock.value > 0) {
    const Seconds waiting{counts.cycles / device.clock.value};
    // Beside what takes longer, arithmetic or traffic: a part of that hides, so that less of it never takes longer in all.
    const Seconds beside = std::max(time.compute, time.memory + time.l2) * counts.beside;
    time.launch += std::max(Seconds{0}, waiting - beside);
  }
  return roofline_time(time, counts.cold_bytes, peak, device);
}

}  // namespace engine

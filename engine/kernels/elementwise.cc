#include "engine/kernels/elementwise.h"

#include "engine/kernels/traffic.h"

namespace engine {

KernelTime elementwise_time(const Elementwise& op, const Device& device) {
  const TrafficTime traffic = traffic_time(device, op.cold_bytes, op.resident_bytes);
  KernelTime time{.memory = traffic.memory,
                  .l2 = traffic.l2,
                  .launch = device.launch_latency,
                  .flops = Flops{op.flops},
                  .bytes = Bytes{op.cold_bytes + op.resident_bytes}};
  // A device file without a vector rate is charged for traffic only.
  if (device.vector_peak.value > 0) {
    time.compute = time.flops / (device.vector_peak * device.on_chip_scale());
  }
  return time;
}

}  // namespace engine

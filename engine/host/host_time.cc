#include "engine/host/host_time.h"

#include <algorithm>

namespace engine {

std::int64_t captured_batch(std::int64_t batch, const HostSettings& host) {
  if (host.mode != HostMode::graph || batch > host.largest_graph) return batch;
  // 1, 2, 4, then multiples of 8, and of 16 above 256: what current engines capture by default.
  if (batch <= 2) return batch;
  if (batch <= 4) return std::min<std::int64_t>(4, host.largest_graph);
  const std::int64_t step = batch <= 256 ? 8 : 16;
  return std::min((batch + step - 1) / step * step, host.largest_graph);
}

LaunchMode launch_mode(bool decode_only, std::int64_t batch, const HostSettings& host) {
  const bool captured = host.mode == HostMode::graph && decode_only && batch <= host.largest_graph;
  return captured ? LaunchMode::replay : LaunchMode::eager;
}

HostTime host_time(Seconds device_time, double launches, std::int64_t sequences, LaunchMode mode,
                   const HostSettings& host) {
  HostTime time;
  time.low = host.low;
  time.high = host.high;
  if (mode == LaunchMode::replay) {
    time.gap = host.kernel_gap * std::max(0.0, launches - 1);
    time.launch = host.graph_launch;
  } else {
    // The device cannot run ahead of the launches; the first one is never hidden.
    const Seconds launching = host.launch_cost * launches;
    time.launch = host.launch_cost + std::max(Seconds{0}, launching - device_time);
  }
  const Seconds work = host.step_overhead + host.step_per_sequence * double(sequences);
  const Seconds busy = device_time + time.gap + time.launch;
  time.between = host.asynchronous ? std::max(Seconds{0}, work - busy) : work;
  return time;
}

}  // namespace engine

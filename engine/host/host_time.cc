#include "engine/host/host_time.h"

#include <algorithm>
#include <string_view>

namespace engine {
namespace {

// The smallest of the sizes written in `sizes` that holds the batch; 0 where none does.
std::int64_t listed_batch(std::int64_t batch, std::string_view sizes) {
  std::int64_t best = 0, number = 0;
  bool in_number = false;
  const auto take = [&] {
    if (in_number && number >= batch && (best == 0 || number < best)) best = number;
    number = 0;
    in_number = false;
  };
  for (const char c : sizes) {
    if (c >= '0' && c <= '9' && number < 1'000'000) {
      number = number * 10 + (c - '0');
      in_number = true;
    } else {
      take();
    }
  }
  take();
  return best;
}

// Engines that capture graphs compile their models as well, and launch what no graph has from there. Told not to, they go through
// the model's own code.
Seconds one_launch(const HostSettings& host) {
  return host.mode == HostMode::eager ? std::max(host.launch_cost, host.eager_launch_cost)
                                      : host.launch_cost;
}

// Until the last kernel of a step is launched, where kernels are launched one by one.
Seconds launching_time(const StepWork& step, const HostSettings& host) {
  return one_launch(host) * step.launches + host.layer_cost * step.layers;
}

// The number by which captured graphs are chosen: sequences or tokens.
std::int64_t counted(DecodeSize size, const HostSettings& host) {
  return host.graph_sizes == GraphSizes::tokens ? size.tokens() : size.sequences;
}

std::int64_t captured_batch(std::int64_t batch, const HostSettings& host) {
  if (host.mode != HostMode::graph || batch > host.largest_graph) return batch;
  if (!host.captured_sizes.empty()) {
    return std::max(batch, listed_batch(batch, host.captured_sizes));
  }
  // 1, 2, 4, then multiples of 8, and of 16 above 256: what current engines capture by default.
  if (batch <= 2) return batch;
  if (batch <= 4) return std::min<std::int64_t>(4, host.largest_graph);
  const std::int64_t step = batch <= 256 ? 8 : 16;
  return std::min((batch + step - 1) / step * step, host.largest_graph);
}

}  // namespace

std::int64_t captured_tokens(DecodeSize size, const HostSettings& host) {
  const std::int64_t captured = captured_batch(counted(size, host), host);
  return host.graph_sizes == GraphSizes::tokens ? captured : captured * size.queries;
}

LaunchMode launch_mode(bool decode_only, DecodeSize size, const HostSettings& host) {
  const std::int64_t batch = counted(size, host);
  bool captured = host.mode == HostMode::graph && decode_only && batch <= host.largest_graph;
  if (captured && !host.captured_sizes.empty()) {
    captured = listed_batch(batch, host.captured_sizes) > 0;
  }
  return captured ? LaunchMode::replay : LaunchMode::eager;
}

HostTime host_time(Seconds device_time, const StepWork& step, LaunchMode mode,
                   const HostSettings& host) {
  HostTime time;
  time.low = host.low;
  time.high = host.high;
  time.gap = host.kernel_gap * std::max(0.0, step.launches - 1);
  if (mode == LaunchMode::replay) {
    time.launch = host.graph_launch;
  } else {
    // The device cannot run ahead of the launches; the first one is never hidden.
    const Seconds launching = launching_time(step, host);
    time.launch = one_launch(host) + std::max(Seconds{0}, launching - device_time - time.gap);
  }
  const Seconds work = host.step_overhead + host.step_per_sequence * double(step.sequences);
  const Seconds busy = device_time + time.gap + time.launch;
  time.between = host.asynchronous ? std::max(Seconds{0}, work - busy) : work;
  time.between += time_per_kv_token(host) * step.kv_tokens;
  return time;
}

HostLine host_line(const StepWork& work, LaunchMode mode, const HostSettings& host) {
  HostLine line;
  line.gap = host.kernel_gap * std::max(0.0, work.launches - 1);
  if (mode == LaunchMode::replay) {
    line.added = line.gap + host.graph_launch;
  } else {
    line.added = line.gap + one_launch(host);
    line.least = one_launch(host) + launching_time(work, host);
  }
  const Seconds between = host.step_overhead + host.step_per_sequence * double(work.sequences);
  if (host.asynchronous) {
    line.least = std::max(line.least, between);
  } else {
    line.added += between;
    if (line.least.value > 0) line.least += between;
  }
  const Seconds listing = time_per_kv_token(host) * work.kv_tokens;
  line.added += listing;
  if (line.least.value > 0) line.least += listing;
  return line;
}

Savings step_savings(const Savings& kernels, Seconds device_time, const HostLine& line) {
  // Plain numbers: asked in every step with prompts, and gcc compares those with one instruction.
  const double busy = (device_time + line.added).value, least = line.least.value;
  const double step = std::max(busy, least);
  Savings saved;
  for (std::size_t i = 0; i < saved.by_part.size(); ++i) {
    saved.by_part[i] = Seconds{step - std::max(busy - kernels.by_part[i].value, least)};
  }
  saved[Bound::host] = Seconds{step} - device_time;
  return saved;
}

}  // namespace engine

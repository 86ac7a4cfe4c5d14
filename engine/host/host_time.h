// What the host adds to a step: launches, replays, gaps, and the work between steps.
#pragma once

#include <cstdint>

#include "engine/base/savings.h"
#include "engine/base/units.h"
#include "engine/host/host_settings.h"

namespace engine {

// Sequences that decode in a step, and the tokens that each has in it.
struct DecodeSize {
  std::int64_t sequences = 0;
  std::int64_t queries = 1;

  std::int64_t tokens() const { return sequences * queries; }
};

// Tokens that a decode batch runs at: those of the next captured size, or its own where none is.
std::int64_t captured_tokens(DecodeSize size, const HostSettings& host);

enum class LaunchMode : std::uint8_t { eager, replay };

// How a step's kernels reach the device: only whole decode batches are captured.
LaunchMode launch_mode(bool decode_only, DecodeSize size, const HostSettings& host);

struct HostTime {
  Seconds gap;      // the device idles between kernels
  Seconds launch;   // the device waits for launches
  Seconds between;  // the device waits for scheduling, sampling and output
  double low = 1;   // nine steps in ten take between `low` and `high` times each of these
  double high = 1;
  Seconds total() const { return gap + launch + between; }
  void add(const HostTime& other, double times = 1) {
    gap += other.gap * times;
    launch += other.launch * times;
    between += other.between * times;
    low = other.low;
    high = other.high;
  }
};

struct StepWork {
  double launches = 0;
  // Of a step that reads prompts: its layers, whose code the host goes through beside the launches. What that takes was measured on
  // prompts; of decodes it is only known that they launch their kernels.
  double layers = 0;
  std::int64_t sequences = 0;
  double kv_tokens = 0;  // in the caches of its sequences
};

// `device_time` is the time of the step's kernels. What streams tokens to clients works beside steps.
HostTime host_time(Seconds device_time, const StepWork& work, LaunchMode mode,
                   const HostSettings& host);

// What a step waits for longer for every token in its sequences' caches, whatever else it waits for.
inline Seconds time_per_kv_token(const HostSettings& host) {
  return host.asynchronous ? Seconds{0} : host.step_per_kv_token;
}

// The same as a line: whatever the device time D, the whole step takes max(D + added, least) and
// `gap` of it is idle between kernels. What makes long stretches of steps summable.
struct HostLine {
  Seconds added;
  Seconds least;
  Seconds gap;
};
HostLine host_line(const StepWork& work, LaunchMode mode, const HostSettings& host);

// What a step saves where its kernels, which take `device_time`, would save `kernels`, and where the host took no
// time at all: as much as the host lets it.
Savings step_savings(const Savings& kernels, Seconds device_time, const HostLine& line);

}  // namespace engine

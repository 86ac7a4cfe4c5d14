// Operations of layers that carry a state from token to token: the short convolution before, and the scan itself.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"
#include "engine/hardware/dtype.h"
#include "engine/model/op_counts.h"

namespace engine {

// How a token changes the state of a head, which decays before.
enum class ScanRule : std::uint8_t {
  add,    // the product of its key and its value is added (Mamba-2)
  delta,  // what the key finds in the state is taken out of the value first (gated delta rule)
  channel_delta,  // likewise, and each channel of the keys has a decay of its own (Kimi Delta Attention)
};
constexpr std::array<std::string_view, 3> enum_names(ScanRule) {
  return {"add", "delta", "channel_delta"};
}
constexpr bool takes_back(ScanRule rule) { return rule != ScanRule::add; }

// How fast kernels are, measured on an H200 (specs/calibration/h200-sxm: scans.csv, megatron_kernels.csv.gz). Other devices are taken
// to reach as much.
struct ScanPace {
  double chunk;  // tokens of a prompt that are handled as matrix products
  // Prompts: several kernels with small products between them reach so much of the peak,
  double of_peak;
  double prompt_kernels;  // time before they work, counted in smallest kernels
  double chunk_cycles;    // and carry the state from one chunk to the next, one after the other,
  double beside_chunks;   // which is so much of their arithmetic.
  // Single tokens read and write their states.
  double of_bandwidth;
  double single_kernels;
  // So many times as long as a prompt that is served.
  double trained;
  double gradients;
};

// Mamba-2's Triton kernels: prompts 8.6 to 9.4% of the peak, single tokens within 4% (24 rows). Training multiplies by gates within
// the scan, and reads its inputs from one wide tensor: 1.3 and 1.55 times as long. Gradients, with states, gates and scores computed
// again, take 4.6 and 4.0 times as long.
inline constexpr ScanPace kAddPace{.chunk = 256,
                                   .of_peak = 0.088,
                                   .prompt_kernels = 1.55,
                                   .chunk_cycles = 0,
                                   .beside_chunks = 0,
                                   .of_bandwidth = 0.74,
                                   .single_kernels = 1.55,
                                   .trained = 1.42,
                                   .gradients = 4.3};

// fla-core's Triton kernels of gated delta rules: prompts 2.0% off in the mean (nine rows of three shapes), single tokens 4% (twelve),
// gradients 1% (three; their compiler gets the values wrong on this device, which changes no shape).
inline constexpr ScanPace kDeltaPace{.chunk = 64,
                                     .of_peak = 0.08,
                                     .prompt_kernels = 10,
                                     .chunk_cycles = 2000,
                                     .beside_chunks = 0.3,
                                     .of_bandwidth = 0.62,
                                     .single_kernels = 2.3,
                                     .trained = 1,
                                     .gradients = 2.88};

// The same with a decay for each channel: prompts take twice as long, 1.6% off (three rows of 32 heads), single tokens less, 3% (eight),
// gradients 1% (three).
inline constexpr ScanPace kChannelDeltaPace{.chunk = 64,
                                            .of_peak = 0.04,
                                            .prompt_kernels = 20,
                                            .chunk_cycles = 4000,
                                            .beside_chunks = 0.3,
                                            .of_bandwidth = 0.85,
                                            .single_kernels = 2.3,
                                            .trained = 1,
                                            .gradients = 4.2};

constexpr const ScanPace& pace_of(ScanRule rule) {
  switch (rule) {
    case ScanRule::add:
      return kAddPace;
    case ScanRule::delta:
      return kDeltaPace;
    case ScanRule::channel_delta:
      return kChannelDeltaPace;
  }
  return kAddPace;
}

// Linear attention or a state-space scan: each token updates and reads a state of `head_dim` x `state` in every head.
struct Scan {
  ScanRule rule = ScanRule::add;
  std::int64_t sequences = 1;
  double tokens = 1;
  std::int64_t heads = 1;
  std::int64_t head_dim = 64;
  std::int64_t state = 128;
  std::int64_t groups = 0;  // of heads that share what is written and read; 0: each has its own
  double slower = 1;        // than a prompt's scan, as gradients are
  // States that are written of each sequence: one after each token where some of them may not hold.
  std::int64_t written = 1;
  Dtype format = Dtype::fp32;  // of the state

  // Within a chunk tokens meet pairwise, as in attention; between chunks they meet through the state, which single tokens update one
  // by one.
  OpCounts counts() const {
    const ScanPace& pace = pace_of(rule);
    const double all = double(heads), dim = double(head_dim), width = double(state);
    const double apart = groups > 0 ? double(groups) : all;
    const double length = tokens / double(sequences);
    const bool single = length <= double(written);
    const double state_bytes = all * dim * width * bytes_of(format);
    const double decays = rule == ScanRule::channel_delta ? all * width * 4 : 0;
    return {.flops = tokens * flops_per_token(std::min(pace.chunk, length), apart),
            // The state is read once a step.
            .cold_bytes = double(sequences) * state_bytes * double(1 + written),
            .resident_bytes = tokens * ((all * 2 * dim + apart * 2 * width) * 2 + decays),
            .unit = OpCounts::Unit::matrix,
            .of_peak = single ? 1 : pace.of_peak / slower,
            .of_bandwidth = pace.of_bandwidth,
            .kernels = single ? pace.single_kernels : pace.prompt_kernels,
            .cycles = single ? 0 : pace.chunk_cycles * length / pace.chunk,
            .beside = pace.beside_chunks};
  }

  bool operator==(const Scan&) const = default;

 private:
  // Each token of a chunk meets half of it, in products of two operations.
  double flops_per_token(double together, double apart) const {
    const double all = double(heads), dim = double(head_dim), width = double(state);
    // Scores and their product with the values in the chunk; update and read of the state.
    if (!takes_back(rule)) return together * (apart * width + all * dim) + all * 4 * dim * width;
    // Keys with keys, whose triangle is inverted and multiplied with keys and values; what keys find in the state; then as above.
    return all * (together * (3 * width + 2 * dim) + together * together / 3 + 6 * dim * width);
  }
};

// A short causal convolution over tokens, one filter a channel.
struct Convolution {
  double tokens = 1;
  std::int64_t channels = 1;
  std::int64_t width = 4;

  // causal_conv1d on an H200, two widths (specs/calibration/h200-sxm/megatron_kernels.csv.gz).
  static constexpr double kOfBandwidth = 0.6;

  OpCounts counts() const {
    const double values = tokens * double(channels);
    return {.flops = 2 * values * double(width),
            .cold_bytes = double(channels * width) * 2,
            .resident_bytes = values * 2 * 2,
            .of_bandwidth = kOfBandwidth};
  }

  bool operator==(const Convolution&) const = default;
};

}  // namespace engine

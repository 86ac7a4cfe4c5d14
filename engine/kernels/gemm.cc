#include "engine/kernels/gemm.h"

#include <algorithm>
#include <array>
#include <limits>

#include "engine/base/rounding.h"
#include "engine/kernels/traffic.h"

namespace engine {
namespace {

// Output tiles a library chooses from, by rows and columns. Small tiles fill more multiprocessors,
// large ones are what the matrix units reach their peak with.
struct Tile {
  double rows;
  double columns;
};
constexpr std::array<Tile, 5> kTiles{{{16, 64}, {16, 128}, {64, 128}, {128, 128}, {128, 256}}};
constexpr std::array<double, 3> kSplits{1, 4, 16};

// Work of the busiest multiprocessor times their number: what the device spends its peak on.
// Tiles are whole (a ragged edge takes as long as a full tile) and run in whole waves; when the
// output is too small to fill the device, the inner dimension is split. Taking the best of a fixed
// set of choices, each of which grows with m, n and k, keeps the result growing with them.
double occupied_flops(double m, double n, double k, double groups, double multiprocessors) {
  double best = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    const double tiles = groups * whole_up(m / tile.rows) * whole_up(n / tile.columns);
    for (const double split : kSplits) {
      const double inner = whole_up(k / split);
      const double waves = whole_up(tiles * split / multiprocessors);
      best = std::min(best, waves * tile.rows * tile.columns * inner);
      if (tiles * split >= multiprocessors) break;  // a finer split only adds waves
    }
  }
  return 2 * best * multiprocessors;
}

}  // namespace

Dtype compute_dtype(Dtype weights, Dtype activations) {
  return bytes_of(weights) > bytes_of(activations) ? weights : activations;
}

KernelTime gemm_time(const Gemm& gemm, const Device& device) {
  const double m = double(gemm.m), n = double(gemm.n), k = double(gemm.k);
  const double batch = double(gemm.batch);
  const double weights = batch * stored_bytes(n * k, gemm.weights, gemm.group);
  const double activations = batch * (m * k * bytes_of(gemm.activations) + m * n * 2);
  const TrafficTime traffic = traffic_time(device, weights, activations);
  const FlopsPerSecond peak = matrix_peak(device, compute_dtype(gemm.weights, gemm.activations));
  const double occupied = occupied_flops(m, n, k, batch, double(device.multiprocessors));
  return {.compute = Flops{occupied} / peak,
          .memory = traffic.memory,
          .l2 = traffic.l2,
          .launch = device.launch_latency,
          .flops = Flops{2 * batch * m * n * k},
          .bytes = Bytes{weights + activations}};
}

KernelTime grouped_gemm_time(const GroupedGemm& gemm, const Device& device) {
  const double n = double(gemm.n), k = double(gemm.k);
  const double weights = gemm.touched * stored_bytes(n * k, gemm.weights, gemm.group);
  const double activations = gemm.rows * (k * bytes_of(gemm.activations) + n * 2);
  const TrafficTime traffic = traffic_time(device, weights, activations);
  const FlopsPerSecond peak = matrix_peak(device, compute_dtype(gemm.weights, gemm.activations));
  const double occupied =
      occupied_flops(gemm.rows / gemm.touched, n, k, gemm.touched, double(device.multiprocessors));
  return {.compute = Flops{occupied} / peak,
          .memory = traffic.memory,
          .l2 = traffic.l2,
          .launch = device.launch_latency,
          .flops = Flops{2 * gemm.rows * n * k},
          .bytes = Bytes{weights + activations}};
}

}  // namespace engine

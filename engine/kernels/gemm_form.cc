#include "engine/kernels/gemm_form.h"

#include <array>
#include <limits>

#include "engine/base/rounding.h"

namespace engine {
namespace {

// Output tiles, by rows and columns. Taking the best of a fixed list, each of which grows with m, n and
// k, keeps the time growing with them.
struct Tile {
  double rows;
  double columns;
};
constexpr std::array<Tile, 8> kTiles{
    {{256, 128}, {128, 256}, {192, 128}, {128, 192}, {128, 128}, {64, 128}, {64, 64}, {32, 64}}};
constexpr double kInner = 64;      // of one step over k
constexpr double kLeastSplit = 4;  // steps that a part of a split k has at least
constexpr double kMostParts = 32;  // of a split k

}  // namespace

FormTime gemm_form(const GemmShape& shape, const DeviceRates& device, const GemmFit& fit,
                   double floor) {
  const double input = shape.groups * shape.m * shape.k * shape.input_bytes;
  const double weights = shape.groups * shape.n * shape.k * shape.weight_bytes;
  const double output = shape.groups * shape.m * shape.n * 2;
  // Weights come from memory; the input was just written and stays in the cache if everything fits.
  const double held = held_share_4(input + weights + output, fit.l2cap * device.cache);
  const double least_traffic = shape.weights / device.bandwidth;
  const double traffic = std::max(least_traffic, (weights + input * (1 - held) + output * fit.mwr) /
                                                     (device.bandwidth * fit.eta_m));

  const double cycle = 1 / device.clock;                      // us a thousand clocks
  const double load_rate = fit.c_l2bw * 64e3 * device.clock;  // bytes a us and multiprocessor
  const double flop_rate = shape.peak / device.processors * fit.eta_c;
  const double per_flop = 2 * kInner / flop_rate;
  const double per_byte = kInner / load_rate;
  const double steps = whole_up(shape.k / kInner);
  const double iteration = fit.lit * cycle;
  const double per_output = 2 / load_rate * fit.epi;
  const double last = fit.latw * cycle;
  const double joining = fit.split * cycle;
  const double per_part = output * 4 / (load_rate * device.processors);
  double best = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    const double area = tile.rows * tile.columns;
    const double blocks = shape.groups * whole_up(shape.m / tile.rows) *
                          whole_up(shape.n / tile.columns) / device.processors;
    const double arithmetic = per_flop * (area + fit.x0 * (tile.rows + tile.columns));
    const double loading =
        (tile.rows * shape.input_bytes + tile.columns * shape.weight_bytes) * per_byte;
    const double step = std::max(arithmetic, loading) + iteration;
    const double finish = area * per_output + last;
    const double waves = blocks <= 1 ? 1 : (1 - fit.ws) * whole_up(blocks) + fit.ws * blocks;
    best = std::min(best, waves * (steps * step + finish));
    // While tiles do not fill the device, k may be split: more blocks, then a pass to add them up.
    double share = 0.5;  // of k in one part; powers of two, so products are exact
    for (double split = 2; split <= kMostParts && blocks * split <= 1; split *= 2, share *= 0.5) {
      const double part = std::max(whole_up(steps * share), kLeastSplit);
      best = std::min(best, part * step + finish + joining + split * per_part);
    }
  }
  best += fit.lat * cycle;
  const double compute = best * (1 + fit.thr * best / (best + 1000));
  const double longer = std::max(compute, traffic);
  const double share = std::min(compute, traffic) / longer;
  const double pipeline = fit.rc * traffic / (traffic + fit.rt);
  const double useful = 2 * shape.groups * shape.m * shape.n * shape.k;
  return {.compute = compute,
          .memory = traffic + pipeline,
          .launch = floor,
          .time = floor + pipeline + longer * std::cbrt(1 + share * share * share),
          .least = std::max({least_traffic, useful / shape.peak, shape.bytes / device.cache_rate})};
}

}  // namespace engine

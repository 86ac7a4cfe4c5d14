#include "engine/kernels/gemm_form.h"

#include <array>
#include <limits>

#include "engine/base/rounding.h"

namespace engine {
namespace {

// Output tiles, by rows and columns. Taking the best of a fixed list, each of which grows with m, n and
// k, keeps the time growing with them.
struct FormTile {
  double rows;
  double columns;
};
constexpr std::array<FormTile, 8> kFormTiles{
    {{256, 128}, {128, 256}, {192, 128}, {128, 192}, {128, 128}, {64, 128}, {64, 64}, {32, 64}}};
// Few rows are computed with the weights as the long side of a matrix instruction, whose short side has 8 columns or a
// multiple: the narrowest tile computes no more than that. It is loaded and written as a whole.
constexpr double kNarrowest = 32;
double narrowest_rows(double m) { return m <= 8 ? 8 : m <= 16 ? 16 : kNarrowest; }
constexpr double kInner = 64;      // of one step over k
constexpr double kLeastSplit = 4;  // steps that a part of a split k has at least
constexpr double kMostParts = 32;  // of a split k

// Long kernels draw more power than a board may, and clocks fall.
double sustained(double time, const GemmFit& fit) {
  return time * (1 + fit.sustained_slowdown * time / (time + 1000));
}

// Bytes of operands a microsecond and multiprocessor.
double load_rate(const DeviceRates& device, const GemmFit& fit) {
  return fit.cache_rate * 64e3 * device.clock;
}

// The fastest choice of tile and split so far, and what is behind it.
struct Choice {
  double time = std::numeric_limits<double>::infinity();
  double steps = 0;       // over k, of all waves
  double arithmetic = 0;  // of one step; the longer of the two counts
  double loading = 0;
};

// The best of all tiles and splits; `output` is in bytes.
[[gnu::always_inline]] inline Choice fastest_choice(const GemmShape& shape,
                                                    const DeviceRates& device, const GemmFit& fit,
                                                    double output) {
  const double cycle = 1 / device.clock;  // us a thousand clocks
  const double loads = load_rate(device, fit);
  const double flop_rate = shape.peak / device.processors * fit.compute_share;
  const double per_flop = 2 * kInner / flop_rate;
  const double per_byte = kInner / loads;
  const double steps = whole_up(shape.k / kInner);
  const double iteration = fit.step_latency * cycle;
  const double per_output = 2 / loads * fit.tile_writing;
  const double last = fit.tile_start * cycle;
  const double joining = fit.split_joining * cycle;
  const double per_part = output * 4 / (loads * device.processors);
  const double narrow = narrowest_rows(shape.m);
  Choice best;
  for (const FormTile& tile : kFormTiles) {
    const double area = tile.rows * tile.columns;
    const double rows = tile.rows > kNarrowest ? tile.rows : narrow;
    const double blocks = shape.groups * whole_up(shape.m / tile.rows) *
                          whole_up(shape.n / tile.columns) / device.processors;
    const double arithmetic =
        per_flop * (rows * tile.columns + fit.small_tile_loss * (tile.rows + tile.columns));
    const double loading =
        (tile.rows * shape.input_bytes + tile.columns * shape.weight_bytes) * per_byte;
    const double step = std::max(arithmetic, loading) + iteration;
    const double finish = area * per_output + last;
    const double waves =
        blocks <= 1 ? 1 : (1 - fit.wave_overlap) * whole_up(blocks) + fit.wave_overlap * blocks;
    const double whole = waves * (steps * step + finish);
    if (whole < best.time) best = {whole, waves * steps, arithmetic, loading};
    // While tiles do not fill the device, k may be split: more blocks, then a pass to add them up.
    double share = 0.5;  // of k in one part; powers of two, so products are exact
    for (double split = 2; split <= kMostParts && blocks * split <= 1; split *= 2, share *= 0.5) {
      const double part = std::max(whole_up(steps * share), kLeastSplit);
      const double parts = part * step + finish + joining + split * per_part;
      if (parts < best.time) best = {parts, part, arithmetic, loading};
    }
  }
  return best;
}

}  // namespace

FormTime gemm_form(const GemmShape& shape, const DeviceRates& device, const GemmFit& fit,
                   double floor) {
  const double input = shape.groups * shape.m * shape.k * shape.input_bytes * shape.distinct;
  const double weights = shape.groups * shape.n * shape.k * shape.weight_bytes;
  const double output = shape.groups * shape.m * shape.n * shape.output_bytes;
  // Weights come from memory; the input was just written and stays in the cache if everything fits.
  const double held = held_share_4(input + weights + output, fit.cache_share * device.cache);
  const double least_traffic = shape.weights / device.bandwidth;
  const double traffic =
      std::max(least_traffic, (weights + input * (1 - held) + output * fit.write_passes) /
                                  (device.bandwidth * fit.memory_share));

  const double cycle = 1 / device.clock;  // us a thousand clocks
  const double iteration = fit.step_latency * cycle;
  const Choice best = fastest_choice(shape, device, fit, output);
  const double tiles = best.time + fit.kernel_start * cycle;
  const double compute = sustained(tiles, fit);
  // Arithmetic hides loads or the other way round, and without it larger tiles would need fewer: the longer one takes
  // the step. What a step takes beyond both is waiting for operands to arrive.
  const double paced = best.steps * std::max(best.arithmetic, best.loading) / tiles;
  const bool by_arithmetic = best.arithmetic >= best.loading;
  const double longer = std::max(compute, traffic);
  const double share = std::min(compute, traffic) / longer;
  const double pipeline = fit.pipeline_fill * traffic / (traffic + fit.pipeline_half);
  const double useful = 2 * shape.groups * shape.m * shape.n * shape.k;
  return {.compute = compute,
          .memory = traffic + pipeline,
          .launch = floor,
          .time = floor + pipeline + longer * std::cbrt(1 + share * share * share),
          .least = std::max({least_traffic, useful / shape.peak, shape.bytes / device.cache_rate}),
          .arithmetic_share = by_arithmetic ? paced : 0,
          .cache_share = by_arithmetic ? 0 : paced,
          .memory_share = best.steps * iteration / tiles};
}

double steady_time(const SteadyWork& work, const DeviceRates& device, const GemmFit& fit) {
  const FormTile& tile = kFormTiles.front();
  const double area = tile.rows * tile.columns;
  const double step_flops = 2 * kInner * area;  // of one multiprocessor
  const double lost = 1 + fit.small_tile_loss * (tile.rows + tile.columns) / area;
  const double arithmetic = step_flops * lost * device.processors / (work.peak * fit.compute_share);
  const double loading = kInner *
                         (tile.rows * work.input_bytes + tile.columns * work.weight_bytes) /
                         load_rate(device, fit);
  const double step = std::max(arithmetic, loading) + fit.step_latency / device.clock;
  return sustained(work.flops / step_flops * step / device.processors, fit);
}

}  // namespace engine

#include "engine/kernels/gemm.h"

#include <algorithm>
#include <array>
#include <limits>

#include "engine/base/rounding.h"
#include "engine/kernels/absorbed.h"
#include "engine/kernels/gemm_form.h"
#include "engine/kernels/kernel_models.h"
#include "engine/kernels/traffic.h"
#include "engine/kernels/wide_products.h"

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

// Bytes of one stored weight as the fits count them: four-bit blocks of 16 share an 8-bit scale.
double fitted_bytes(Dtype dtype, GemmFormat format) {
  return format == GemmFormat::nvfp4 ? 0.5625 : bytes_of(dtype);
}

template <class Product>
const FittedSet<GemmFit>* gemm_set(const Product& gemm, const Calibration& calibration,
                                   ParameterSet chosen) {
  if (!has_gemm_format(gemm.weights, gemm.activations)) return nullptr;
  const auto sets_of = [&](GemmFormat format) -> const auto& {
    return calibration.gemm[static_cast<std::size_t>(format)];
  };
  const GemmFormat format = gemm_format(gemm.weights, gemm.activations, gemm.group);
  const auto* set = find_set(sets_of(format), chosen);
  if (format != GemmFormat::int8 || is_own(sets_of(format), set)) return set;
  // Where a generation's integer products were not measured, its products in the other format of eight bits say more than integer ones of
  // another generation.
  const auto* other = sets_of(GemmFormat::fp8).find(chosen);
  return sets_of(format).find(chosen) == nullptr && other != nullptr ? other : set;
}

// Both kinds of product, as `groups` of one shape.
struct Product {
  double m, n, k, groups;
  Dtype weights, activations;
  double weight_bytes;  // all of them, scales included
  double bytes;         // all traffic
  bool quantizes_input;
  double distinct = 1;      // share of the input that differs, and so comes from memory
  double output_bytes = 2;  // of one value
};

KernelTime fitted_product(const Product& product, const Device& device,
                          const FittedSet<GemmFit>& set, ParameterSet chosen, GemmFormat format,
                          const Coordinates& shape) {
  const DeviceRates rates = device_rates(device);
  const GemmFit& fit = set.fit;
  const double input_bytes = fitted_bytes(product.activations, format);
  // In a step quantising is an op of its own, so its part of the floor is not the product's.
  const double floor = shifted_floor(
      product.quantizes_input ? fit.floor : fit.floor - fit.quantize_floor, set, rates);
  FormTime form = gemm_form(
      {.m = product.m,
       .n = product.n,
       .k = product.k,
       .groups = product.groups,
       .input_bytes = input_bytes,
       .weight_bytes = fitted_bytes(product.weights, format),
       .weights = product.weight_bytes,
       .bytes = product.bytes,
       .distinct = product.distinct,
       .output_bytes = product.output_bytes,
       .peak = flop_rate(device, compute_dtype(device, product.weights, product.activations))},
      rates, fit, floor);
  if (product.quantizes_input) {
    const double rows = product.groups * product.m;
    const double extra =
        rows * product.k * (2 + input_bytes) / (rates.bandwidth * fit.quantize_memory_share) +
        fit.quantize_row * rows / rates.processors;
    form.launch += extra;
    form.time += extra;
  }
  return fitted_time(form, Flops{2 * product.groups * product.m * product.n * product.k},
                     Bytes{product.bytes}, set, chosen, shape);
}

KernelTime product_roofline(const Product& product, const Device& device,
                            const Calibration* calibration) {
  const double activations = product.bytes - product.weight_bytes;
  const TrafficTime traffic = traffic_time(device, product.weight_bytes, activations);
  const Dtype dtype = compute_dtype(device, product.weights, product.activations);
  const FlopsPerSecond peak = matrix_peak(device, dtype);
  const double occupied =
      occupied_flops(product.m, product.n, product.k, product.groups, device.processors());
  const KernelTime bound =
      roofline_time({.compute = Flops{occupied} / peak,
                     .memory = traffic.memory,
                     .l2 = traffic.l2,
                     .launch = device.launch_latency,
                     .flops = Flops{2 * product.groups * product.m * product.n * product.k},
                     .bytes = Bytes{product.bytes}},
                    product.weight_bytes, peak, device);
  return is_wide(dtype) ? reached_in_32_bits(bound, dtype, device, calibration) : bound;
}

// One that no table has: the form of single products, which has not been checked on it.
template <class Op>
KernelTime unmeasured_product(const Product& product, const Op& op, const Device& device,
                              const Calibration* calibration, const Coordinates& shape) {
  const ParameterSet chosen = choose_set(device);
  const auto* set = calibration == nullptr ? nullptr : gemm_set(op, *calibration, chosen);
  if (set == nullptr) return product_roofline(product, device, calibration);
  FittedSet<GemmFit> plain;
  plain.fit = set->fit;
  plain.launch = set->launch;
  plain.low = set->low;
  plain.high = set->high;
  const GemmFormat format = gemm_format(op.weights, op.activations, op.group);
  KernelTime time = fitted_product(product, device, plain, chosen, format, shape);
  time.extrapolated = true;
  return time;
}

bool is_absorbed(Family family) {
  return family == Family::mla_gen_pre || family == Family::mla_gen_post;
}

}  // namespace

KernelTime time_of(const Gemm& op, const KernelContext& context) {
  return is_absorbed(context.family)
             ? absorbed_time(op, context.family, context.device, context.calibration)
             : gemm_time(op, context.device, context.calibration);
}

Coordinates shape_of(const Gemm& op, Family family) {
  return is_absorbed(family) ? absorbed_coordinates(op) : gemm_coordinates(op);
}

OwnSlot slot_of(const Gemm& op, const SlotContext& context) {
  if (is_absorbed(context.family)) return absorbed_slot(op, context);
  if (!has_gemm_format(op.weights, op.activations)) return {};
  const GemmFormat format = gemm_format(op.weights, op.activations, op.group);
  auto& sets = context.calibration.gemm[static_cast<std::size_t>(format)];
  return slot_in(sets, sets, context);
}

KernelTime time_of(const GroupedGemm& op, const KernelContext& context) {
  return grouped_gemm_time(op, context.device, context.calibration);
}

Coordinates shape_of(const GroupedGemm& op, Family) { return grouped_gemm_coordinates(op); }

OwnSlot slot_of(const GroupedGemm& op, const SlotContext& context) {
  if (!has_gemm_format(op.weights, op.activations)) return {};
  const auto format = static_cast<std::size_t>(gemm_format(op.weights, op.activations, op.group));
  return slot_in(context.calibration.grouped_gemm[format], context.calibration.gemm[format],
                 context);
}

KernelTime time_of(const ImageConvolution& op, const KernelContext& context) {
  return convolution_time(op, context.device, context.calibration);
}

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

Dtype compute_dtype(Dtype weights, Dtype activations) {
  return bytes_of(weights) > bytes_of(activations) ? weights : activations;
}

Dtype compute_dtype(const Device& device, Dtype weights, Dtype activations) {
  const Dtype wanted = compute_dtype(weights, activations);
  if (matrix_peak(device, wanted).value > 0) return wanted;
  return device.peak.bf16.value > 0 ? Dtype::bf16 : Dtype::fp16;
}

bool has_gemm_format(Dtype weights, Dtype activations) {
  return !is_wide(weights) && !is_wide(activations);
}

GemmFormat gemm_format(Dtype weights, Dtype activations, std::int64_t group) {
  switch (compute_dtype(weights, activations)) {
    case Dtype::fp8:
      // Scales of blocks are applied to sums, between products; those of a few values by the matrix units themselves, and scales
      // shared by more than a block are one a row or tensor.
      return group > 32 && group <= kLargestBlock ? GemmFormat::fp8_block : GemmFormat::fp8;
    case Dtype::fp4:
      return GemmFormat::nvfp4;
    case Dtype::int8:
    case Dtype::int4:
      return GemmFormat::int8;
    default:
      break;
  }
  if (bytes_of(weights) >= 2) return GemmFormat::bf16;
  return bytes_of(weights) >= 1 ? GemmFormat::int8_wo : GemmFormat::int4_wo;
}

Coordinates gemm_coordinates(const Gemm& gemm) {
  // Libraries have slower kernels for many rows that do not come in eights.
  const bool ragged = gemm.m > 16 && gemm.m % 8 != 0;
  return coordinates(gemm.m, gemm.n, gemm.k, gemm.batch, ragged);
}

Coordinates grouped_gemm_coordinates(const GroupedGemm& gemm) {
  return coordinates(gemm.rows / gemm.touched, gemm.n, gemm.k, gemm.touched, 0);
}

// Hopper's matrix units sum fp8 products up in fewer than 32 bits. A kernel that keeps 32 moves sums to other registers every few steps. On
// an H200 that takes 1.06 times as long (train_kernels.csv: weights against weights_fast, median of 21
// shapes, 1.02 to 1.10). Later generations sum in 32 bits anyway.
void sum_precisely(const Device& device, Dtype format, KernelTime& time) {
  constexpr double longer = 0.06;
  if (format != Dtype::fp8 || choose_set(device) != ParameterSet::hopper) return;
  const Seconds more = time.compute * longer;
  time.compute += more;
  time.time += more;
  time.saved[Bound::compute] += more;
}

double least_arithmetic(const UnitWork& work, const Device& device,
                        const Calibration& calibration) {
  const auto* set = gemm_set(work, calibration, choose_set(device));
  if (set == nullptr) return 0;
  const GemmFormat format = gemm_format(work.weights, work.activations, work.group);
  return steady_time(
      {.flops = work.flops,
       .input_bytes = fitted_bytes(work.activations, format),
       .weight_bytes = fitted_bytes(work.weights, format),
       .peak = flop_rate(device, compute_dtype(device, work.weights, work.activations))},
      device_rates(device), set->fit);
}

// The arithmetic is there whether or not the memory hides it, so that under a power limit a faster memory leaves no more of it.
void take_at_least(Seconds least, Seconds arithmetic, KernelTime& time) {
  time.compute = std::max(time.compute, arithmetic);
  if (time.time >= least) return;
  const Seconds more = least - time.time;
  time.time += more;
  time.saved[Bound::compute] += more;
}

KernelTime faster_of(const KernelTime& one, const KernelTime& other) {
  const bool first = one.time <= other.time;
  const KernelTime& slower = first ? other : one;
  KernelTime time = first ? one : other;
  // Under a power limit the one with less of it may be the faster one.
  time.compute = std::min(one.compute, other.compute);
  time.tier = Tier::transfer;
  time.extrapolated = true;
  time.low = std::min(time.low, slower.low);
  time.high = std::max(time.high, slower.high * (slower.time / time.time));
  return time;
}

namespace {

// Kernels that expand narrow weights do the same product as in 16 bits, and the expanding besides: in the tables of A100 they
// take 1.06 to 1.13 times as long from 1,024 rows on. Narrow weights save time of the memory, of which arithmetic and the
// expanding hide all that so many rows have; fewer rows are as their own tables say, but for the `arithmetic` of the product.
void expand_weights(const KernelTime& wide, double rows, Seconds arithmetic, KernelTime& time) {
  constexpr double expanding = 1.1, many_rows = 1024;
  const double share = std::min(1.0, rows / many_rows);
  const Seconds working = wide.time - wide.launch;
  const Seconds expanded = std::min(working, wide.compute * expanding) * share;
  const Seconds least =
      std::max(expanded + wide.launch * share, std::min(wide.time, time.launch + arithmetic));
  take_at_least(least, std::max(expanded, std::min(working, arithmetic)), time);
}

bool expands_weights(GemmFormat format) {
  return format == GemmFormat::int8_wo || format == GemmFormat::int4_wo;
}

// A product with narrow weights, of which `time` is what the set of its format says. On a generation whose products with narrow
// weights nobody measured, another one's kernel speaks for them, with all that it needs to start there. Kernels for wider weights
// with fewer bytes to read say as much, those of its own 16-bit products among them: the fastest is what an engine runs, and the
// interval reaches to the slowest. Each of them expands the weights.
KernelTime narrow_product_time(const Gemm& gemm, const Product& product, const Device& device,
                               const Calibration& calibration, KernelTime time) {
  const ParameterSet chosen = choose_set(device);
  const GemmFormat format = gemm_format(gemm.weights, gemm.activations, gemm.group);
  Gemm wide = gemm;
  wide.weights = gemm.activations;
  const KernelTime in_16_bits = gemm_time(wide, device, &calibration);
  const Seconds arithmetic{
      least_arithmetic({time.flops.value, wide.weights, wide.activations, wide.group}, device,
                       calibration) *
      1e-6};
  expand_weights(in_16_bits, product.m, arithmetic, time);
  if (measures_generation(calibration.gemm[static_cast<std::size_t>(format)], chosen)) return time;
  for (const GemmFormat wider : {GemmFormat::int8_wo, GemmFormat::bf16}) {
    const auto* set = find_set(calibration.gemm[static_cast<std::size_t>(wider)], chosen);
    if (set == nullptr) continue;
    KernelTime other = fitted_product(product, device, *set, chosen, wider, gemm_coordinates(gemm));
    expand_weights(in_16_bits, product.m, arithmetic, other);
    time = faster_of(time, other);
  }
  return time;
}

}  // namespace

KernelTime gemm_time(const Gemm& gemm, const Device& device, const Calibration* calibration) {
  const double m = double(gemm.m), n = double(gemm.n), k = double(gemm.k);
  const double batch = double(gemm.batch);
  const double weights = batch * stored_bytes(n * k, gemm.weights, gemm.group);
  const double output = bytes_of(unquantized(gemm.activations));
  const double activations = batch * (m * k * bytes_of(gemm.activations) + m * n * output);
  const Product product{m,
                        n,
                        k,
                        batch,
                        gemm.weights,
                        gemm.activations,
                        weights,
                        weights + activations,
                        gemm.quantizes_input};
  if (calibration != nullptr) {
    const ParameterSet chosen = choose_set(device);
    if (const auto* set = gemm_set(gemm, *calibration, chosen)) {
      const GemmFormat format = gemm_format(gemm.weights, gemm.activations, gemm.group);
      KernelTime time =
          fitted_product(product, device, *set, chosen, format, gemm_coordinates(gemm));
      const auto& sets = calibration->gemm[static_cast<std::size_t>(format)];
      // Products have tables of every generation in most formats; in others another one's kernel speaks.
      const bool of_generation = is_own(sets, set) || sets.find(chosen) == set;
      time.extrapolated = time.extrapolated || !of_generation;
      if (expands_weights(format) && time.tier != Tier::measured) {
        time = narrow_product_time(gemm, product, device, *calibration, time);
      }
      if (gemm.precise)
        sum_precisely(device, compute_dtype(device, gemm.weights, gemm.activations), time);
      return time;
    }
  }
  return product_roofline(product, device, calibration);
}

KernelTime grouped_gemm_time(const GroupedGemm& gemm, const Device& device,
                             const Calibration* calibration) {
  const double n = double(gemm.n), k = double(gemm.k);
  const double weights = gemm.touched * stored_bytes(n * k, gemm.weights, gemm.group);
  const double activations =
      gemm.rows * (k * bytes_of(gemm.activations) + n * bytes_of(unquantized(gemm.activations)));
  const Product product{
      gemm.rows / gemm.touched, n,    k, gemm.touched, gemm.weights, gemm.activations, weights,
      weights + activations,    false};
  const Coordinates shape = grouped_gemm_coordinates(gemm);
  if (calibration != nullptr && has_gemm_format(gemm.weights, gemm.activations)) {
    const ParameterSet chosen = choose_set(device);
    const GemmFormat format = gemm_format(gemm.weights, gemm.activations, gemm.group);
    const auto& own = calibration->grouped_gemm[static_cast<std::size_t>(format)];
    if (const auto* set = find_set(own, chosen)) {
      return fitted_product(product, device, *set, chosen, format, shape);
    }
  }
  return unmeasured_product(product, gemm, device, calibration, shape);
}

KernelTime convolution_time(const ImageConvolution& op, const Device& device,
                            const Calibration* calibration) {
  const double n = double(op.n), k = double(op.k), groups = double(op.groups);
  const double weights = groups * stored_bytes(n * k, op.weights, op.group);
  const double value = bytes_of(op.activations);
  return unmeasured_product({.m = op.rows,
                             .n = n,
                             .k = k,
                             .groups = groups,
                             .weights = op.weights,
                             .activations = op.activations,
                             .weight_bytes = weights,
                             .bytes = weights + (op.values_in + op.values_out) * value,
                             .quantizes_input = false,
                             .distinct = op.values_in / (groups * op.rows * k),
                             .output_bytes = value},
                            op, device, calibration, {});
}

}  // namespace engine

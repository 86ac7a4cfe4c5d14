#include "engine/kernels/moe.h"

#include <array>
#include <limits>

#include "engine/kernels/form.h"
#include "engine/kernels/gemm.h"
#include "engine/kernels/kernel_models.h"
#include "engine/kernels/traffic.h"
#include "engine/kernels/wide_products.h"
#include "engine/model/expert_places.h"

namespace engine {
namespace {

constexpr double kFirstSkew = 1.01;  // the two exponents the tables have
constexpr double kSecondSkew = 1.2;

double matrices(const Moe& op) { return op.gated ? 3 : 2; }

// Tokens that the call picks its copies from and sums them into.
double passed_tokens(const Moe& op) { return op.exchanged ? 0 : op.tokens; }

// How strongly popular experts fill single devices, over what the power law of exponent 1 says.
double skew_strength(const Moe& op, const MoeFit& fit) {
  // Calls of the tables pass over all tokens, and the fitted strength makes up for that where devices
  // are many. After an exchange nothing is left to make up for.
  if (op.exchanged) return op.skew;
  const double second = fit.strong_skew_strength / std::max(fit.skew_strength, 1e-9);
  // Steeper laws than the tables have go on in proportion to their exponent.
  const double relative = op.skew <= kFirstSkew    ? op.skew / kFirstSkew
                          : op.skew <= kSecondSkew ? 1 + (second - 1) * (op.skew - kFirstSkew) /
                                                             (kSecondSkew - kFirstSkew)
                                                   : second * op.skew / kSecondSkew;
  return fit.skew_strength * relative;
}

Routed routed(const Moe& op, const MoeFit& fit) {
  const double local = double(op.local_experts), mean = copies_on_a_device(op);
  if (op.balanced) {
    const double copies = std::max(mean, 1.0);
    return {copies, std::max(1.0, std::min(local, copies))};
  }
  const bool favours = op.skew > 0;
  const double fuller = fullest_device(op, favours ? skew_strength(op, fit) : 0);
  const double copies = std::max(1.0, mean * fuller);
  const double even = std::min({local, copies, experts_touched(op, fuller)});
  if (!favours) return {copies, std::max(1.0, even)};
  // Favourites are chosen more often, so that fewer experts are touched than by even routing.
  double touched = std::min(
      even, -local * std::expm1(-std::pow(fit.touched_scale * copies / local, fit.touched_power)));
  if (op.skew < kFirstSkew) touched = even + (touched - even) * op.skew / kFirstSkew;
  return {copies, std::max(1.0, touched)};
}

double weight_bytes(const Moe& op) {
  if (bytes_of(op.weights) >= 1) return bytes_of(op.weights);
  // Four bits and their scales: 16 share an 8-bit one in nvfp4, 32 to 128 a wider one elsewhere.
  return moe_format(op) == MoeFormat::nvfp4 ? 0.5625 : 0.53;
}

// Clocks times multiprocessors go into what matrix instructions do that wait for their operands: those of Ampere, 2,048 16-bit FLOP
// each, which later generations keep beside faster ones. Kernels that expand integers (Marlin) use no others.
double synchronous_rate(const DeviceRates& device) {
  return 2048e3 * device.clock * device.processors;
}

// What the matrix instructions that kernels for `format` use can do.
double instruction_rate(const Device& device, const DeviceRates& rates, const Moe& op,
                        MoeFormat format) {
  const double peak = flop_rate(device, compute_dtype(device, op.weights, op.activations));
  return format == MoeFormat::int4_wo ? std::min(peak, synchronous_rate(rates)) : peak;
}

constexpr double kLargestTile = 128;  // rows

// Time of a tile's arithmetic, in rows that cost nothing besides.
double rows_of_a_tile(double tile, const MoeFit& fit) {
  return tile + fit.small_tile_loss * (tile + 128) / 128;
}

// `peak` is what the device can do, `rate` what the kernel's instructions can.
FormTime moe_form(const Moe& op, const Routed& work, const DeviceRates& device, double peak,
                  double rate, const FittedSet<MoeFit>& set) {
  const MoeFit& fit = set.fit;
  const double hidden = double(op.hidden), inner = double(op.intermediate);
  const double rows = work.copies / work.touched;
  const double weights = work.touched * matrices(op) * hidden * inner * weight_bytes(op);
  const double activations = work.copies * (2 * hidden + matrices(op) * inner) * 2;
  const double held = held_share_4(weights + activations, fit.cache_share * device.cache);
  const double passes =
      activations * fit.activation_passes / 2 + fit.token_passes * 4 * passed_tokens(op) * hidden;
  const double memory =
      (weights + passes * (1 - 0.7 * held)) / (device.bandwidth * fit.memory_share);

  const double per_flop = 256 / (rate / device.processors * fit.compute_share);
  double compute = std::numeric_limits<double>::infinity();
  for (const double tile : {16.0, 32.0, 64.0, kLargestTile}) {
    // An expert's last tile is half full on average. The tables' small calls fill one tile, and the first experts need
    // a second one before the mean does; what an exchange brings is ragged whatever its size, so that fewer and fuller
    // experts never take longer.
    const double filled = rows / tile;
    const double ragged = op.exchanged ? 0.5 : std::clamp(filled - 0.5, 0.0, 0.5);
    const double tiles = work.touched * std::max(filled + ragged, 1.0) / device.processors;
    const double each = per_flop * rows_of_a_tile(tile, fit);
    const double up = std::max(tiles * std::max((matrices(op) - 1) * inner / 128, 1.0), 1.0);
    const double down = std::max(tiles * std::max(hidden / 128, 1.0), 1.0);
    compute = std::min(compute, each * (up * hidden + down * inner) +
                                    0.1 * fit.wave_start / device.clock * (up + down));
  }
  const double useful = 2 * matrices(op) * copies_on_a_device(op) * hidden * inner;
  FormTime form;
  form.compute = compute;
  form.memory = memory;
  form.launch = shifted_floor(fit.floor, set, device) +
                fit.token_copy * work.copies / device.processors +
                fit.expert_doubling / device.clock * std::log2(double(op.local_experts) + 1);
  form.time = form.launch + overlapped(compute, memory, fit.overlap_power);
  form.least = std::max(useful / peak, weights / device.bandwidth);
  return form;
}

KernelTime moe_roofline(const Moe& op, const Device& device, const Calibration* calibration) {
  const double hidden = double(op.hidden), inner = double(op.intermediate);
  const auto [copies, touched] = routed_by_skew(op);
  const double weights =
      touched * stored_bytes(matrices(op) * hidden * inner, op.weights, op.group);
  // Copies in, between the projections and out, and the sum over a token's experts.
  const double activations =
      (copies * (2 * hidden + matrices(op) * inner) + passed_tokens(op) * 2 * hidden) *
      bytes_of(unquantized(op.activations));
  const TrafficTime traffic = traffic_time(device, weights, activations);
  const Dtype dtype = compute_dtype(device, op.weights, op.activations);
  const FlopsPerSecond peak = matrix_peak(device, dtype);
  const double rows = copies / touched, processors = device.processors();
  const double up = (matrices(op) - 1) * inner;
  const double occupied = occupied_flops(rows, up, hidden, touched, processors) +
                          occupied_flops(rows, hidden, inner, touched, processors);
  const KernelTime bound =
      roofline_time({.compute = Flops{occupied} / peak,
                     .memory = traffic.memory,
                     .l2 = traffic.l2,
                     .launch = device.launch_latency,
                     .flops = Flops{2 * matrices(op) * copies_on_a_device(op) * hidden * inner},
                     .bytes = Bytes{weights + activations}},
                    weights, peak, device);
  return is_wide(dtype) ? reached_in_32_bits(bound, dtype, device, calibration) : bound;
}

}  // namespace

KernelTime time_of(const Moe& op, const KernelContext& context) {
  return moe_time(op, context.device, context.calibration);
}

Coordinates shape_of(const Moe& op, Family) { return moe_coordinates(op); }

OwnSlot slot_of(const Moe& op, const SlotContext& context) {
  if (!has_gemm_format(op.weights, op.activations)) return {};
  auto& sets = context.calibration.moe[static_cast<std::size_t>(moe_format(op))];
  return slot_in(sets, sets, context);
}

Routed routed_by_skew(const Moe& op) {
  const double fuller = op.balanced ? 1 : fullest_device(op, op.skew);
  const double copies = copies_on_a_device(op) * fuller;
  const double touched = op.balanced   ? std::min(copies, double(op.local_experts))
                         : op.skew > 0 ? favourites_touched(op, fuller)
                                       : experts_touched(op, fuller);
  return {copies, std::max(1.0, touched)};
}

// Loads are evenly spread in their logarithm, as where the fullest device comes from (`largest_load`): classes of experts, each so
// many times as popular as the one before. Favourites are met by the first tokens already, and the least popular by the last.
double favourites_touched(const Moe& op, double fuller) {
  constexpr std::size_t classes = 16;
  std::array<double, classes> popular{};
  const double step = op.skew * std::log(largest_load(op)) / double(classes);
  const double next = std::exp(step);
  double all = 0, load = 1;
  for (double& of_class : popular) {
    all += of_class = load;
    load *= next;
  }
  // Choices of one token are different experts: what favourites that all tokens choose cannot take goes to the others.
  double choices = double(op.top_k) / double(op.experts) * double(classes);
  std::size_t open = classes;
  while (open > 0 && choices * popular[open - 1] > all) {
    all -= popular[--open];
    choices -= 1;
  }
  double missed = 0;
  for (std::size_t i = 0; i < classes; ++i) {
    const double chosen = i < open ? choices * popular[i] / all : 1;
    missed += std::exp(fuller * op.tokens * std::log1p(-std::min(0.999999, chosen)));
  }
  return double(op.local_experts) * (1 - missed / double(classes));
}

double experts_touched(const Moe& op, double fuller) {
  const double chosen = std::min(0.999999, double(op.top_k) / double(op.experts));
  return -double(op.local_experts) * std::expm1(fuller * op.tokens * std::log1p(-chosen));
}

Coordinates moe_coordinates(const Moe& op) {
  return coordinates(op.tokens, op.hidden, op.intermediate, op.top_k, op.experts, op.local_experts,
                     op.skew);
}

MoeFormat moe_format(const Moe& op) {
  const bool four_bits = bytes_of(op.weights) < 1;
  switch (compute_dtype(op.weights, op.activations)) {
    case Dtype::fp8:
    case Dtype::int8:
      if (four_bits) return MoeFormat::mxfp4_mxfp8;
      return gemm_format(op.weights, op.activations, op.group) == GemmFormat::fp8_block
                 ? MoeFormat::fp8_block
                 : MoeFormat::fp8;
    case Dtype::fp4:
    case Dtype::int4:
      return MoeFormat::nvfp4;
    default:
      break;
  }
  if (!four_bits) return MoeFormat::bf16;
  return op.weights == Dtype::fp4 && op.kernels == FourBitExperts::own ? MoeFormat::mxfp4
                                                                       : MoeFormat::int4_wo;
}

namespace {

// With the zeros that Marlin's kernels multiply besides.
Moe filled_up(Moe op) {
  if (marlin_runs(op.kernels, op.weights, op.activations)) {
    const ExpertWidths whole = marlin_widths({op.hidden, op.intermediate});
    op.hidden = whole.hidden;
    op.intermediate = whole.intermediate;
  }
  return op;
}

// `set` is of kernels for `format`.
KernelTime fitted_experts(const Moe& asked, const Device& device, const Calibration& calibration,
                          MoeFormat format, const FittedSet<MoeFit>& set) {
  const Moe op = filled_up(asked);
  const Dtype computed = compute_dtype(op.weights, op.activations);
  const DeviceRates rates = device_rates(device);
  const double peak = flop_rate(device, compute_dtype(device, op.weights, op.activations));
  const double rate = instruction_rate(device, rates, op, format);
  const Routed work = routed(op, set.fit);
  const double hidden = double(op.hidden), inner = double(op.intermediate);
  const double values = matrices(op) * hidden * inner;
  const double useful = matrices(op) * double(asked.hidden) * double(asked.intermediate);
  const double bytes = work.touched * values * weight_bytes(op) +
                       copies_on_a_device(op) * (2 * hidden + matrices(op) * inner) * 2;
  const Flops flops{2 * copies_on_a_device(op) * useful};
  FormTime form = moe_form(op, work, rates, peak, rate, set);
  if (set.tier != Tier::measured) {
    bound_arithmetic(
        least_arithmetic({flops.value, computed, computed, op.group}, device, calibration), form);
  }
  return fitted_time(form, flops, Bytes{bytes}, set, choose_set(device), moe_coordinates(op));
}

bool expands_weights(MoeFormat format) {
  return format == MoeFormat::int4_wo || format == MoeFormat::mxfp4;
}

// Experts of four-bit weights and 16-bit inputs on a generation whose own nobody measured in that format; another one speaks for it
// in `set`. Kernels that take integers (Marlin) take floating-point weights as well: those of the generation say more. Where it has
// neither, its 16-bit experts with fewer bytes to read say as much, and an engine runs the faster.
KernelTime unmeasured_experts(const Moe& op, const Device& device, const Calibration& calibration,
                              MoeFormat format, const FittedSet<MoeFit>& set) {
  const ParameterSet chosen = choose_set(device);
  const auto sets_of = [&](MoeFormat which) -> const auto& {
    return calibration.moe[static_cast<std::size_t>(which)];
  };
  const auto& integers = sets_of(MoeFormat::int4_wo);
  if (measures_generation(integers, chosen)) {
    return fitted_experts(op, device, calibration, MoeFormat::int4_wo, *integers.find(chosen));
  }
  KernelTime time = fitted_experts(op, device, calibration, format, set);
  const auto* wide = find_shared_set(sets_of(MoeFormat::bf16), chosen);
  if (wide == nullptr) return time;
  KernelTime other = fitted_experts(op, device, calibration, MoeFormat::bf16, *wide);
  // Either way weights are expanded beside the arithmetic of many tokens, which fewer bytes do not shorten.
  const double rate = instruction_rate(device, device_rates(device), op, format);
  const double lost = rows_of_a_tile(kLargestTile, set.fit) / kLargestTile;
  const Seconds arithmetic{time.flops.value * lost / (rate * set.fit.compute_share) * 1e-6};
  for (KernelTime* either : {&time, &other}) {
    take_at_least(either->launch + arithmetic, arithmetic, *either);
  }
  return faster_of(time, other);
}

}  // namespace

KernelTime moe_time(const Moe& op, const Device& device, const Calibration* calibration) {
  if (calibration != nullptr && has_gemm_format(op.weights, op.activations)) {
    const ParameterSet chosen = choose_set(device);
    const MoeFormat format = moe_format(op);
    const auto& sets = calibration->moe[static_cast<std::size_t>(format)];
    if (const auto* set = find_set(sets, chosen)) {
      const bool measured = is_own(sets, set) || measures_generation(sets, chosen);
      KernelTime time = measured || !expands_weights(format)
                            ? fitted_experts(op, device, *calibration, format, *set)
                            : unmeasured_experts(op, device, *calibration, format, *set);
      if (op.precise)
        sum_precisely(device, compute_dtype(device, op.weights, op.activations), time);
      return time;
    }
  }
  return moe_roofline(op, device, calibration);
}

}  // namespace engine

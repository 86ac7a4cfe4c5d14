#include "engine/kernels/attention.h"

#include <algorithm>
#include <cmath>

#include "engine/base/rounding.h"
#include "engine/kernels/attention_form.h"
#include "engine/kernels/form.h"
#include "engine/kernels/gemm.h"
#include "engine/kernels/kernel_models.h"
#include "engine/kernels/overhang.h"
#include "engine/kernels/traffic.h"

namespace engine {
namespace {

bool narrow(Dtype dtype) { return bytes_of(dtype) < 2; }

// Kernels fetch keys in tiles, and sweeps measure whole ones: a context in between takes as long as the
// next tile. The first keys of a tile are a ramp, so that the time stays continuous.
AttentionDecode in_whole_tiles(const AttentionDecode& op) {
  constexpr double tile = 64, ramp = 8;
  const double sequences = double(op.sequences);
  const double keys = op.kv_tokens / sequences;
  const double begun = whole_up(keys / tile) * tile;
  AttentionDecode whole = op;
  whole.kv_tokens = sequences * std::min(begun, begun - tile + tile / ramp * (keys - begun + tile));
  return whole;
}

// The sets of a call's formats, whether or not they have parameters.
template <class AnyCalibration>
auto& prefill_sets(const AttentionPrefill& op, Family family, AnyCalibration& calibration) {
  if (family == Family::mla_prefill) {
    return narrow(op.kv) ? calibration.mla_prefill_fp8_kv : calibration.mla_prefill;
  }
  if (!narrow(op.kv)) return calibration.attn_prefill;
  return narrow(op.activations) ? calibration.attn_prefill_fp8 : calibration.attn_prefill_fp8_kv;
}

// The sets it is looked up in: those, or where tables of a wide cache are of devices nearer to this one, the wide ones. Keys are
// expanded on their way to the same arithmetic.
const FittedSets<PrefillFit>& speaking_prefill_sets(const AttentionPrefill& op, Family family,
                                                    const Calibration& calibration,
                                                    ParameterSet chosen) {
  const auto& sets = prefill_sets(op, family, calibration);
  const auto& wide =
      family == Family::mla_prefill ? calibration.mla_prefill : calibration.attn_prefill;
  if (!sets.any()) return wide;
  if (narrow(op.activations)) return sets;
  for (ParameterSet near = chosen; sets.find(ParameterSet::own) == nullptr;
       near = wider_set(near)) {
    if (sets.find(near) != nullptr || near == ParameterSet::pooled) break;
    if (wide.find(near) != nullptr) return wide;
  }
  return sets;
}

template <class AnyCalibration>
auto& decode_sets(const AttentionDecode& op, Family family, AnyCalibration& calibration) {
  if (family == Family::mla_decode) {
    return narrow(op.kv) ? calibration.mla_decode_fp8 : calibration.mla_decode;
  }
  return narrow(op.kv) ? calibration.attn_decode_fp8 : calibration.attn_decode;
}

}  // namespace

KernelTime time_of(const AttentionPrefill& op, const KernelContext& context) {
  return attention_prefill_time(op, context.device, context.family, context.calibration);
}
KernelTime time_of(const AttentionDecode& op, const KernelContext& context) {
  return attention_decode_time(op, context.device, context.family, context.calibration);
}

Coordinates shape_of(const AttentionPrefill& op, Family) { return prefill_coordinates(op); }
Coordinates shape_of(const AttentionDecode& op, Family) { return decode_coordinates(op); }

OwnSlot slot_of(const AttentionPrefill& op, const SlotContext& context) {
  return slot_in(
      prefill_sets(op, context.family, context.calibration),
      speaking_prefill_sets(op, context.family, context.calibration, choose_set(context.device)),
      context);
}
OwnSlot slot_of(const AttentionDecode& op, const SlotContext& context) {
  auto& sets = decode_sets(op, context.family, context.calibration);
  return slot_in(sets, sets, context);
}

Dtype attention_dtype(const Device& device, Dtype kv, Dtype activations) {
  // Attention of 32 bits is done by the vector units whatever products may be done in: on an H200 it takes as long with
  // TF32 as without (specs/calibration/h200-sxm/fp32_products.csv).
  if (is_wide(activations)) {
    const bool vector = matrix_peak(device, Dtype::fp32).value > 0;
    if (vector || device.peak.tf32.value > 0) return vector ? Dtype::fp32 : Dtype::tf32;
  }
  const bool fp16 = activations == Dtype::fp16 && device.peak.fp16.value > 0;
  const Dtype wide = fp16 || device.peak.bf16.value <= 0 ? Dtype::fp16 : Dtype::bf16;
  // Devices that are no faster in the narrow format expand it to 16 bits, as kernels for them do.
  const bool narrow = kv == Dtype::fp8 && activations == Dtype::fp8 &&
                      matrix_peak(device, Dtype::fp8) > matrix_peak(device, wide);
  return narrow ? Dtype::fp8 : wide;
}

namespace {

// Queries and what comes of them are in 16 bits at least.
double query_bytes(Dtype activations) { return std::max(2.0, bytes_of(activations)); }

// Kernels do not see a window that is longer than what there is to attend to.
double window_seen(std::int64_t window, double keys) {
  return keys < double(window) ? 0 : double(window);
}

}  // namespace

Coordinates prefill_coordinates(const AttentionPrefill& op) {
  const double sequences = double(op.sequences);
  const double query = op.tokens / sequences, keys = op.kv_tokens / sequences;
  return coordinates(query, keys - query, sequences, op.heads, op.kv_heads,
                     double(op.key_dim + op.value_dim) / 2, window_seen(op.window, keys));
}

Coordinates decode_coordinates(const AttentionDecode& op) {
  const double sequences = double(op.sequences), keys = op.kv_tokens / sequences;
  return coordinates(keys, sequences, op.heads, op.kv_heads, op.key_dim,
                     window_seen(op.window, keys));
}

// A backward kernel keeps more in registers and sums gradients of keys and values in memory, so its products run slower than
// the forward kernel's. In whole steps on an H200 (cuDNN, 4,096 to 16,384 tokens) they take 1.4 times as long; with heads wider
// than 128 values half as long again, as tiles shrink (192 and 256 against 128, train_kernels.csv). FlashAttention-2, which
// Ampere has, takes 1.2 times as long (our H200, heads of 64 to 128; 73 and 63% of the peak in Dao 2023).
double backward_slowdown(const AttentionPrefill& op, const Device& device) {
  if (choose_set(device) == ParameterSet::ampere) return 1.2;
  constexpr double narrow = 1.4, wide = 2.1;
  return std::min(op.key_dim, op.value_dim) > 128 ? wide : narrow;
}

namespace {

// The share of the peak that products of a generation reach, beside those of the wider set that speaks for its attention: both
// multiply on the same units, at the same clock. 1 where attention was measured on the generation, or products were not.
double pace_of_products(const FittedSets<PrefillFit>& attention,
                        const FittedSets<GemmFit>& products, ParameterSet chosen) {
  const auto* own = products.find(chosen);
  if (own == nullptr || attention.find(ParameterSet::own) != nullptr) return 1;
  ParameterSet speaks = chosen;
  while (attention.find(speaks) == nullptr) {
    if (speaks == ParameterSet::pooled) return 1;
    speaks = wider_set(speaks);
  }
  const auto* wider = products.find(speaks);
  return wider == nullptr ? 1 : std::min(1.0, own->fit.compute_share / wider->fit.compute_share);
}

struct PacedPeak {
  Dtype dtype;
  FlopsPerSecond peak;
  double pace = 1;
};

// The peak of the format that attention multiplies in. Formats differ in the share of their peak that products reach, so the
// one with the higher peak need not be the faster one.
PacedPeak paced_peak(const AttentionPrefill& op, const Device& device,
                     const FittedSets<PrefillFit>& sets, const Calibration& calibration) {
  const auto in = [&](Dtype dtype) {
    const GemmFormat format = narrow(dtype) ? GemmFormat::fp8 : GemmFormat::bf16;
    const FittedSets<GemmFit>& products = calibration.gemm[static_cast<std::size_t>(format)];
    return PacedPeak{dtype, matrix_peak(device, dtype),
                     pace_of_products(sets, products, choose_set(device))};
  };
  const PacedPeak wide = in(attention_dtype(device, Dtype::bf16, op.activations));
  if (op.kv != Dtype::fp8 || op.activations != Dtype::fp8) return wide;
  const PacedPeak slim = in(Dtype::fp8);
  return slim.peak * slim.pace > wide.peak * wide.pace ? slim : wide;
}

// Sweeps measure attention of 16 bits and less: of 32 the form says as much as of another device.
void only_fitted_in_16_bits(KernelTime& time) {
  time.tier = std::min(time.tier, Tier::transfer);
  time.extrapolated = true;
}

// Tables of an engine may hold kernels that leave the keys of a sequence to one multiprocessor: ten times slower where
// sequences are few and long, and no slower where there are enough of them. What such rows say of the interval counts as far as
// splitting can save: a whole takes no longer than its parts one after the other. Engines whose kernels all split need twice the
// predicted time at most.
void bound_by_splitting(const FormTime& form, KernelTime& time) {
  constexpr double of_those_that_split = 2;
  time.high = std::min(time.high, of_those_that_split * form.splits);
}

}  // namespace

KernelTime forward_prefill_time(const AttentionPrefill& op, const Device& device, Family family,
                                const Calibration* calibration) {
  const double heads = double(op.heads);
  const double width = double(op.key_dim + op.value_dim);
  const Flops useful{2 * width * heads * op.pairs};
  const double kv = op.kv_tokens * double(op.kv_heads) * width * bytes_of(op.kv);
  const double queries = op.tokens * heads * width * query_bytes(op.activations);
  const FlopsPerSecond peak = matrix_peak(device, attention_dtype(device, op.kv, op.activations));
  if (calibration != nullptr) {
    const ParameterSet chosen = choose_set(device);
    const FittedSets<PrefillFit>& sets = speaking_prefill_sets(op, family, *calibration, chosen);
    if (const auto* set = find_set(sets, chosen)) {
      const PacedPeak paced = paced_peak(op, device, sets, *calibration);
      // A sweep's kernels are as they were measured.
      AttentionPrefill asked = op;
      asked.shares_keys = op.shares_keys && !is_own(sets, set);
      FormTime form =
          prefill_form(asked, device_rates(device), paced.peak.value / 1e6 * paced.pace, *set);
      form.least *= paced.pace;  // physics knows the peak
      if (set->tier != Tier::measured) {
        bound_arithmetic(
            least_arithmetic({useful.value, paced.dtype, paced.dtype}, device, *calibration), form);
      }
      KernelTime time =
          fitted_time(form, useful, Bytes{kv + queries}, *set, chosen, prefill_coordinates(op));
      add_overhang(op, device, time);
      if (is_wide(op.activations)) only_fitted_in_16_bits(time);
      return time;
    }
  }
  constexpr double tile = 128;  // query rows of one thread block
  const double rows = op.tokens / double(op.sequences);
  const double blocks = heads * double(op.sequences) * whole_up(rows / tile);
  const double multiprocessors = device.processors();
  // Each block does a full tile of rows over the mean number of keys a row sees; blocks run in
  // whole waves.
  double keys_per_row = op.pairs / op.tokens;
  const double splits = std::floor(multiprocessors / blocks);
  if (splits > 1) {
    const double saved = saved_by_splitting(keys_to_share(op), splits);
    keys_per_row = std::max(1.0, keys_per_row - saved);
  }
  const double waves = whole_up(blocks / multiprocessors);
  const double occupied = waves * multiprocessors * tile * keys_per_row * 2 * width;
  const TrafficTime traffic = traffic_time(device, kv, queries);
  return roofline_time({.compute = Flops{occupied} / peak,
                        .memory = traffic.memory,
                        .l2 = traffic.l2,
                        .launch = device.launch_latency,
                        .flops = useful,
                        .bytes = Bytes{kv + queries}},
                       kv, peak, device);
}

KernelTime attention_prefill_time(const AttentionPrefill& op, const Device& device, Family family,
                                  const Calibration* calibration) {
  KernelTime time = forward_prefill_time(op, device, family, calibration);
  const bool measured = op.backward && calibration != nullptr;
  if (!measured && op.slower == 1) return time;
  const Seconds slower =
      time.compute * ((measured ? backward_slowdown(op, device) : 1) * double(op.slower) - 1);
  time.compute += slower;
  time.time += slower;
  time.saved[Bound::compute] += slower;
  return time;
}

KernelTime attention_decode_time(const AttentionDecode& op, const Device& device, Family family,
                                 const Calibration* calibration) {
  const double width = double(op.key_dim + op.value_dim);
  const Flops useful{2 * width * double(op.heads) * op.pairs()};
  const double stored = op.values_in_keys ? double(op.key_dim) : width;
  const double kv = op.kv_tokens * double(op.kv_heads) * stored * bytes_of(op.kv);
  const double queries =
      double(op.sequences * op.queries) * double(op.heads) * width * query_bytes(op.activations);
  const FlopsPerSecond peak = matrix_peak(device, attention_dtype(device, op.kv, op.activations));
  if (calibration != nullptr) {
    const ParameterSet chosen = choose_set(device);
    const FittedSets<DecodeFit>& sets = decode_sets(op, family, *calibration);
    if (const auto* set = find_set(sets, chosen)) {
      // Keys of one token are fetched too fast for a narrow arithmetic to matter: the fits use the
      // 16-bit peak.
      const Dtype wide = attention_dtype(device, Dtype::bf16, op.activations);
      // Shared sets are fitted without: they are of several kernels.
      const bool swept = is_own(sets, set) && calibration->measured_on.has_value();
      const AttentionDecode whole = swept ? in_whole_tiles(op) : op;
      FormTime form = decode_form(whole, device_rates(device), flop_rate(device, wide), *set);
      form.least *= op.kv_tokens / whole.kv_tokens;  // physics does not know tiles
      KernelTime time =
          fitted_time(form, useful, Bytes{kv + queries}, *set, chosen, decode_coordinates(op));
      bound_by_splitting(form, time);
      add_overhang(op, device, time);
      if (is_wide(op.activations)) only_fitted_in_16_bits(time);
      // Sweeps measure one new token a sequence.
      time.extrapolated = time.extrapolated || op.queries > 1;
      return time;
    }
  }
  // Matrix units take at least 16 query rows; the heads that share a KV head, of all new tokens, fill some of them.
  constexpr double least_rows = 16;
  const double group = double(op.queries) * double(op.heads) / double(op.kv_heads);
  const double rows = whole_up(group / least_rows) * least_rows;
  const double occupied = 2 * width * double(op.kv_heads) * rows * op.kv_tokens;
  const TrafficTime traffic = traffic_time(device, kv, queries);
  return roofline_time({.compute = Flops{occupied} / peak,
                        .memory = traffic.memory,
                        .l2 = traffic.l2,
                        .launch = device.launch_latency,
                        .flops = useful,
                        .bytes = Bytes{kv + queries}},
                       kv, peak, device);
}

}  // namespace engine

#include "engine/kernels/absorbed.h"

#include "engine/base/rounding.h"
#include "engine/kernels/form.h"
#include "engine/kernels/gemm.h"

namespace engine {
namespace {

FormTime absorbed_form(const Gemm& op, const DeviceRates& device, double peak,
                       const FittedSet<AbsorbedFit>& set) {
  const AbsorbedFit& fit = set.fit;
  const double tokens = double(op.m), heads = double(op.batch);
  const double matrix = double(op.n) * double(op.k);
  const double rows = tokens >= 64 ? 64 * whole_up(tokens / 64) : 16 * whole_up(tokens / 16);
  const double tiles = heads * whole_up(tokens / 128) * 4 / device.processors;
  const double rate = peak * fit.compute_share;
  // All of it at the device's rate, or a quarter of a head's matrix on one multiprocessor.
  const double compute =
      std::max(2 * rows * heads * matrix / rate,
               fit.tile_start / device.clock * std::max(tiles, 1.0) * 0.25 +
                   2 * std::min(rows, 128.0) * matrix / 4 / (rate / device.processors));
  const double weights = heads * matrix * bytes_of(op.weights);
  const double bytes = weights + tokens * heads * double(op.n + op.k) * 2;
  const double held = held_share_4(bytes, fit.cache_share * device.cache);
  const double memory_rate = device.bandwidth * fit.memory_share;
  FormTime form;
  form.compute = compute;
  form.memory = bytes * (1 - held) / memory_rate;
  form.l2 = bytes * held / cache_rate(memory_rate, fit.cache_speed, device);
  form.launch = shifted_floor(fit.floor, set, device);
  form.time = form.launch + overlapped(compute, form.memory + form.l2, fit.overlap_power);
  // Tables repeat a call, which then finds its matrices in the cache; a step has read other layers' since.
  form.least = std::max(2 * tokens * heads * matrix / peak, weights / device.bandwidth);
  return form;
}

// The sets of a call's format, whether or not they have parameters.
template <class AnyCalibration>
auto& absorbed_sets(const Gemm& op, Family family, AnyCalibration& calibration) {
  const bool narrow = bytes_of(op.weights) < 2;
  if (family == Family::mla_gen_pre) {
    return narrow ? calibration.mla_gen_pre_fp8 : calibration.mla_gen_pre;
  }
  return narrow ? calibration.mla_gen_post_fp8 : calibration.mla_gen_post;
}

// What speaks for a call: a form, and the product as it is multiplied.
struct Spoken {
  const FittedSet<AbsorbedFit>* set;
  Gemm op;
};

bool is_shared_by_generations(ParameterSet set) {
  return set == ParameterSet::synchronous || set == ParameterSet::asynchronous ||
         set == ParameterSet::pooled;
}

// Narrow weights are multiplied as they are where such products of the device or of its generation were measured. Other engines expand them
// to 16 bits once, as a model is loaded: TensorRT-LLM on Blackwell, vLLM everywhere. Hopper's narrow kernels, two to three times slower than
// those in 16 bits, say nothing of another generation.
Spoken spoken(const Gemm& op, Family family, const Calibration& calibration, ParameterSet chosen) {
  const auto& sets = absorbed_sets(op, family, calibration);
  if (bytes_of(op.weights) >= 2) return {find_set(sets, chosen), op};
  const auto* own = sets.find(ParameterSet::own);
  const auto* narrow = own != nullptr || is_shared_by_generations(chosen) ? own : sets.find(chosen);
  if (narrow != nullptr) return {narrow, op};
  Gemm expanded = op;
  expanded.weights = expanded.activations = Dtype::bf16;
  const auto* wide = find_set(absorbed_sets(expanded, family, calibration), chosen);
  if (wide != nullptr) return {wide, expanded};
  return {find_set(sets, chosen), op};
}

}  // namespace

Coordinates absorbed_coordinates(const Gemm& op) { return coordinates(op.m, op.batch); }

OwnSlot absorbed_slot(const Gemm& op, const SlotContext& context) {
  auto& sets = absorbed_sets(op, context.family, context.calibration);
  if (sets.any()) return slot_in(sets, sets, context);
  Gemm wide = op;
  wide.weights = Dtype::bf16;
  return slot_in(sets, absorbed_sets(wide, context.family, context.calibration), context);
}

KernelTime absorbed_time(const Gemm& op, Family family, const Device& device,
                         const Calibration* calibration) {
  if (calibration == nullptr) return gemm_time(op, device);
  const ParameterSet chosen = choose_set(device);
  const auto [set, multiplied] = spoken(op, family, *calibration, chosen);
  if (set == nullptr) return gemm_time(op, device);
  const Dtype dtype = compute_dtype(device, multiplied.weights, multiplied.activations);
  const KernelTime roofline = gemm_time(multiplied, device);
  return fitted_time(
      absorbed_form(multiplied, device_rates(device), flop_rate(device, dtype), *set),
      roofline.flops, roofline.bytes, *set, chosen, absorbed_coordinates(op));
}

}  // namespace engine

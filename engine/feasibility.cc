#include "engine/feasibility.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "engine/comm/links_needed.h"
#include "engine/kernels/gemm.h"
#include "engine/kernels/kernel_model.h"
#include "engine/kernels/power.h"
#include "engine/model/model_ops.h"

namespace engine {
namespace {

using Problem = std::optional<Refusal>;

Problem split_problem(const Deployment& deployment) {
  auto problem = shard_problem(deployment.model, deployment.parallel);
  if (!problem) return std::nullopt;
  return Refusal{ReasonClass::divisibility, std::move(*problem)};
}

// Formats may be those that the model is published in, or the usual ones, which the sweep does not state.
std::string other_formats(const Device& device, const Quantization& quant) {
  const bool narrow = bytes_of(quant.weights) < 2;
  const bool wide = is_wide(compute_dtype(quant.weights, quant.activations));
  const bool by_vector = wide && matrix_peak(device, Dtype::fp32).value > 0;
  const std::string in_32_bits =
      by_vector ? "; quant: {weights: fp32, activations: fp32} runs" : "";
  for (const Dtype half : {Dtype::bf16, Dtype::fp16}) {
    if (matrix_peak(device, half).value <= 0) continue;
    if (by_vector) return fmt::format("{}, and so does {}", in_32_bits, name_of(half));
    return narrow ? fmt::format("; quant.activations: {} runs these weights", name_of(half))
                  : fmt::format("; quant: {{weights: {0}, activations: {0}}} runs", name_of(half));
  }
  return in_32_bits;
}

// Memory and processors are parts of a board that is on: what it draws at rest it always draws.
Problem power_problem(const Device& device) {
  if (!states_power(device) || device.power_limit > device.idle_power) return std::nullopt;
  return Refusal{
      ReasonClass::power,
      fmt::format("device.power_limit ({:g} W) leaves nothing for work: the device draws "
                  "{:g} W at rest (device.idle_power)",
                  device.power_limit.value, device.idle_power.value)};
}

// What a chip that is described by its parts says of itself.
Problem chip_problem(const Device& device, const Quantization& quant) {
  for (const KernelModel& model : kernel_models()) {
    if (model.problem == nullptr) continue;
    if (auto problem = model.problem(device, quant)) return problem;
  }
  return std::nullopt;
}

Problem cluster_problem(double devices, const Fabric& fabric) {
  if (fabric.most_devices == 0 || devices <= double(fabric.most_devices)) return std::nullopt;
  return Refusal{ReasonClass::cluster,
                 fmt::format("needs {} devices; the cluster has {}", devices, fabric.most_devices)};
}

}  // namespace

std::optional<Refusal> arithmetic_problem(const Device& device, const Quantization& quant) {
  const Dtype dtype = compute_dtype(quant.weights, quant.activations);
  if (matrix_peak(device, dtype).value <= 0) {
    return Refusal{ReasonClass::format,
                   fmt::format("the device has no {0} matrix arithmetic (device.peak.{0} is 0){1}",
                               name_of(dtype), other_formats(device, quant))};
  }
  if (is_microscaled(quant) && matrix_peak(device, Dtype::fp4).value <= 0) {
    return Refusal{
        ReasonClass::format,
        fmt::format("fp8 with a scale for {} values (quant.group; MXFP8) needs matrix units that "
                    "scale blocks, which came with fp4 (device.peak.fp4 is 0); quant.group: 128 "
                    "scales square blocks, 1048576 a tensor",
                    quant.group)};
  }
  if (is_wide(quant.activations)) return std::nullopt;  // attention and logits are in 32 bits, too
  const Dtype wide = matrix_peak(device, Dtype::bf16).value > 0 ? Dtype::bf16 : Dtype::fp16;
  if (matrix_peak(device, wide).value > 0) return std::nullopt;
  return Refusal{ReasonClass::format,
                 "the device has no 16-bit matrix arithmetic, which attention and logits need"};
}

std::optional<Refusal> feasibility_problem(const Deployment& deployment, const Fabric& fabric,
                                           double copies) {
  if (auto problem = split_problem(deployment)) return problem;
  if (auto problem = arithmetic_problem(deployment.device, deployment.quant)) return problem;
  if (auto problem = chip_problem(deployment.device, deployment.quant)) return problem;
  if (auto problem = power_problem(deployment.device)) return problem;
  if (auto problem = cluster_problem(devices_of(deployment, copies), fabric)) return problem;
  return links_problem(deployment.parallel, fabric);
}

std::optional<Refusal> too_long(const char* what, std::int64_t tokens, const ModelSpec& model) {
  if (model.max_context == 0 || tokens <= model.max_context) return std::nullopt;
  return Refusal{ReasonClass::context, fmt::format("{} ({}) exceeds model.max_context ({})", what,
                                                   tokens, model.max_context)};
}

}  // namespace engine

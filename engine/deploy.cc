#include "engine/deploy.h"

#include <fmt/core.h>

#include <string>
#include <tuple>

#include "engine/chosen_calibration.h"
#include "engine/engine_kernels.h"
#include "engine/feasibility.h"

namespace engine {
namespace {

// What to say of a calibration that is not there.
std::string missing(const CalibrationWish& wish) {
  const std::string tier = "calibration.tier " + std::string(name_of(wish.tier)) + ": ";
  if (wish.tier != TierChoice::measured) {
    return wish.engine.empty() ? tier + "no such calibration is loaded"
                               : "serving.kernels: no calibration of the engine '" +
                                     std::string(wish.engine) + "' is loaded";
  }
  return wish.name.empty() ? tier + "no calibration was measured on such a device"
                           : tier + "there is no calibration '" + std::string(wish.name) + "'";
}

std::string guests_part(const Deployed& deployed) {
  if (deployed.guest.weights.value <= 0) return "";
  return fmt::format(" (of them {} of adapters, a draft, an encoder or vectors)",
                     in_gb(deployed.guest.weights));
}

std::string batches_part(const MemoryDemand& demand) {
  if (demand.batches == 1) return "";
  return fmt::format(" (a batch of {} in each of {} stages)", demand.sequences, demand.batches);
}

Bytes kv_of(const Deployed& deployed, const MemoryDemand& demand) {
  return deployed.kv_of(double(demand.context)) * double(demand.sequences * demand.batches);
}

// With the cache that the point needs, which is what fails next.
bool would_fit(const Deployed& deployed, const Parallelism& parallel, const Quantization& quant,
               const MemoryDemand& demand) {
  Deployed other = deployed;
  other.shard = shard_of(deployed.spec->model, parallel, quant);
  return footprint_of(other, demand).left() >= kv_of(other, demand);
}

// The settings that a user may not have thought of: adapters all on the device, second copies of experts, and the width of published
// weights.
std::string what_would_help(const Deployed& deployed, const MemoryDemand& demand) {
  const Deployment& spec = *deployed.spec;
  const LoraSettings& lora = spec.serving.lora;
  if (lora.rank > 0 && lora.slots == 0 && deployed.guest.weights.value > 0) {
    return "; serving.lora.slots keeps fewer adapters there";
  }
  Parallelism fewest = spec.parallel;
  fewest.expert_copies = ExpertCopies::fewest;
  const bool fewer = expert_places(spec.model, fewest).placed < deployed.shard.experts.placed;
  if (fewer && would_fit(deployed, fewest, spec.quant, demand)) {
    return "; parallel.expert_copies: fewest would fit";
  }
  if (bytes_of(spec.quant.weights) != 2) return "";
  Quantization narrow = spec.quant;
  narrow.weights = Dtype::fp8;
  return would_fit(deployed, spec.parallel, narrow, demand) ? "; quant.weights: fp8 would fit" : "";
}

}  // namespace

std::optional<Refusal> deploy(const Deployment& deployment, const CalibrationSettings& calibration,
                              const Calibrations& calibrations, double copies, Deployed& deployed) {
  const CalibrationChoice chosen = chosen_calibration(calibration, deployment, calibrations);
  if (chosen.missing) {
    return Refusal{ReasonClass::calibration, missing(calibration_wish(calibration, deployment))};
  }
  deployed.spec = &deployment;
  deployed.calibration = chosen.calibration;
  deployed.fabric = fabric_of(deployment.cluster, deployment.device);
  if (auto problem = feasibility_problem(deployment, deployed.fabric, copies)) return problem;
  deployed.shard = shard_of(deployment.model, deployment.parallel, deployment.quant);
  choose_kernels(deployment.serving, deployment.device, deployed.fabric, deployed.shard);
  return std::nullopt;
}

Footprint footprint_of(const Deployed& deployed, const MemoryDemand& demand) {
  const ServingSettings& serving = deployed.spec->serving;
  return footprint_of(deployed.shard, deployed.spec->device,
                      {.utilization = serving.memory_utilization,
                       .of = serving.memory_share,
                       .reserved = serving.reserved_memory,
                       .beside = deployed.guest.weights,
                       .step_tokens = demand.step_tokens,
                       .step_sampled = demand.sampled,
                       .per_logit = demand.per_logit});
}

std::optional<Refusal> memory_problem(const Deployed& deployed, const Footprint& footprint,
                                      const MemoryDemand& demand) {
  const Bytes left = footprint.left();
  if (left.value < 0) {
    return Refusal{
        ReasonClass::memory,
        fmt::format(
            "the model does not fit: weights {}{}, activations {} and reserve {} exceed the "
            "budget of {} by {}{}",
            in_gb(footprint.weights), guests_part(deployed), in_gb(footprint.activations),
            in_gb(footprint.reserved), in_gb(footprint.budget), in_gb(left * -1.0),
            what_would_help(deployed, demand))};
  }
  const std::int64_t sequences = demand.sequences * demand.batches;
  const Bytes used = kv_of(deployed, demand);
  if (used > left) {
    return Refusal{
        ReasonClass::memory,
        fmt::format("the KV cache does not fit: {} x {} tokens{} need {}, {} are left beside "
                    "weights of {}",
                    sequences, demand.context, batches_part(demand), in_gb(used), in_gb(left),
                    in_gb(footprint.weights))};
  }
  return std::nullopt;
}

Refusal in_role(std::string_view role, Refusal refusal) {
  refusal.text = fmt::format("{}: {}", role, refusal.text);
  return refusal;
}

std::string taken_over(std::string_view role, const Parallelism& of_role,
                       const Parallelism& of_main) {
  std::string degrees;
  for (const auto& [name, own, main] : {std::tuple("tp", of_role.tp, of_main.tp),
                                        {"pp", of_role.pp, of_main.pp},
                                        {"dp", of_role.dp, of_main.dp}}) {
    if (own <= 1 || own != main) continue;
    degrees += fmt::format("{}{}.parallel.{} {}", degrees.empty() ? "" : ", ", role, name, own);
  }
  if (degrees.empty()) return "";
  return fmt::format("; as in the main deployment unless {}.parallel states another: {}", role,
                     degrees);
}

Refusal in_layout_of(const Deployment& main, std::string_view role, const Deployment& on,
                     Refusal refusal) {
  if (refusal.reason_class == ReasonClass::cluster) {
    refusal.text += taken_over(role, on.parallel, main.parallel);
  }
  return refusal;
}

}  // namespace engine

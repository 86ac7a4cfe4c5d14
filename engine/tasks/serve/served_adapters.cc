#include "engine/tasks/serve/served_adapters.h"

#include "engine/kernels/copy.h"
#include "engine/model/adapters.h"

namespace engine {

std::optional<Refusal> adapter_link_problem(const LoraSettings& lora, const Fabric& fabric) {
  const bool linked = lora.load_bandwidth.value > 0 || fabric.host_link.bandwidth.value > 0;
  if (lora.slots == 0 || linked) return std::nullopt;
  return Refusal{ReasonClass::links,
                 "no link brings adapters from the host: state device.host_link or "
                 "serving.lora.load_bandwidth"};
}

AdapterCache::Setup adapters_of(const Load& load, const LoraSettings& lora,
                                const StepContext& context) {
  if (load.adapters == 0 || lora.slots == 0) return {.slots = 0};
  const double per_byte =
      lora.load_bandwidth.value > 0
          ? 1 / lora.load_bandwidth.value
          : copies_over(context.fabric.host_link, context.device, context.calibration)
                .seconds_per_byte;
  return {.slots = lora.slots,
          .load_seconds = adapter_bytes(context.shard).value * per_byte,
          .latency = lora.load_latency.value};
}

std::optional<Refusal> reader_adapter_problem(const Scenario& scenario, const Fabric& fabric) {
  if (scenario.load.adapters == 0) return std::nullopt;
  const LoraSettings &here = scenario.prefill.deployment.serving.lora,
                     &there = scenario.serving.lora;
  if (here.rank != there.rank || here.targets != there.targets) {
    return Refusal{ReasonClass::load,
                   "prefill.serving.lora has another rank or other targets than serving.lora: both "
                   "deployments have the same adapters"};
  }
  return adapter_link_problem(here, fabric);
}

Bytes adapter_memory(const Scenario& scenario, const LoraSettings& lora, const ModelShard& shard) {
  std::int64_t asked = 0;
  if (scenario.task == Task::serve) asked = scenario.load.adapters;
  if (scenario.task == Task::step) asked = scenario.step.adapters;
  if (asked == 0) return Bytes{0};
  const bool fewer = lora.slots > 0 && (lora.slots < asked || scenario.task == Task::step);
  return adapter_bytes(shard) * double(fewer ? lora.slots : asked);
}

}  // namespace engine

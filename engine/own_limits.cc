#include "engine/own_limits.h"

#include "engine/calibration/parameter_set.h"

namespace engine {
namespace {

bool is_open(const ServingSettings& serving) {
  return serving.max_num_batched_tokens == 0 || serving.max_num_seqs == 0;
}

void fill(Deployment& on) {
  const StepLimits limits = own_limits(on.device);
  if (on.serving.max_num_batched_tokens == 0) on.serving.max_num_batched_tokens = limits.tokens;
  if (on.serving.max_num_seqs == 0) on.serving.max_num_seqs = limits.sequences;
}

}  // namespace

// Limits of vLLM's server (EngineArgs.get_batch_defaults in vllm/engine/arg_utils.py), whatever policy a sweep puts into it. The higher ones
// need 70 GiB, and a device whose name is not A100, on which steps of more tokens were slower (its pull request 17885). Names of devices
// decide nothing here, so it goes by their generation.
StepLimits own_limits(const Device& device) {
  constexpr Bytes large{70 * 0x1p30};
  const bool is_large =
      device.memory_capacity >= large && choose_set(device) != ParameterSet::ampere;
  return is_large ? StepLimits{.tokens = 8192, .sequences = 1024}
                  : StepLimits{.tokens = 2048, .sequences = 256};
}

const Scenario& with_own_limits(const Scenario& scenario, std::optional<Scenario>& filled) {
  // A step is as large as it is stated, whatever an engine would allow.
  if (scenario.task == Task::step) return scenario;
  bool any = is_open(scenario.serving);
  each_role(scenario, [&any](std::string_view, const Role& role) {
    any = any || (role.present && is_open(role.deployment.serving));
  });
  if (!any) return scenario;
  filled = scenario;
  fill(*filled);
  each_role(*filled, [](std::string_view, Role& role) {
    if (role.present) fill(role.deployment);
  });
  return *filled;
}

}  // namespace engine

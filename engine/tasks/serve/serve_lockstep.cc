#include "engine/tasks/serve/serve_lockstep.h"

#include <fmt/core.h>

#include <string_view>

namespace engine {

ModelShard in_lockstep(ModelShard shard) {
  shard.lockstep = shard.expert_replicas > 1;
  return shard;
}

StepContext with_shard(const StepContext& context, const ModelShard& shard) {
  return {context.device, context.fabric,     shard, context.host, context.calibration,
          context.work,   context.power_limit};
}

std::optional<Refusal> lockstep_refusal(const Deployment& on) {
  if (on.parallel.ep <= on.parallel.tp) return std::nullopt;
  const auto unsupported = [](std::string_view what) {
    return Refusal{
        ReasonClass::unsupported,
        fmt::format("{} with experts that several replicas share (parallel.ep above parallel.tp) "
                    "is not modelled",
                    what)};
  };
  if (on.parallel.pp > 1) {
    return unsupported("parallel.pp > 1 (batches of several stages that wait for one another)");
  }
  if (on.serving.clock.mode != ClockMode::full) {
    return unsupported("serving.clock.mode slo (one replica's clock would slow the others)");
  }
  return std::nullopt;
}

}  // namespace engine

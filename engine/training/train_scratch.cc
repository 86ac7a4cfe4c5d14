#include "engine/training/train_scratch.h"

#include <utility>

namespace engine {

void KnownCalls::begin(const StepContext& context) {
  StepInputs inputs_of_passes(context);
  // Stages have layers of the same kinds, and replicas do not see one another in a pass.
  inputs_of_passes.shard.parallel.pp = inputs_of_passes.shard.parallel.dp = 1;
  if (inputs_of_passes.recognisable() && inputs_of_passes == of_) return;
  of_ = std::move(inputs_of_passes);
  for (PassCalls& calls : calls_) calls.clear();
}

}  // namespace engine

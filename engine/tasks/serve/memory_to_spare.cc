#include "engine/tasks/serve/memory_to_spare.h"

namespace engine {

bool memory_to_spare(const Scenario& scenario, const PoolSetup& pool, const RunPlan& plan,
                     const ServingSim& sim) {
  const ServingSettings& serving = scenario.serving;
  const Load& load = scenario.load;
  if (load.throughput_fraction > 0 || load.kv_fraction > 0 || plan.lengths > 1) return false;
  if (scenario.capacity.slo.any() || scenario.prefill.present) return false;
  if (serving.prefix_caching && load.repeats_prompts()) return false;
  if (policy_of(serving.policy).reserves) return false;
  if (serving.prediction_error > 0 || serving.new_token_ratio > 1) return false;
  const double blocks = double(pool.kv_blocks) * (1 - serving.watermark) - 1;
  return sim.stats().summary().refused == 0 &&
         sim.stats().pool(0).most_claimed <= blocks * double(serving.block_size);
}

}  // namespace engine

#include "engine/serving/fleet/serving_problem.h"

#include <algorithm>

#include "engine/base/check.h"

namespace engine {

std::int64_t tenants_of(const ServingProblem& problem) {
  const bool replayed = problem.load.arrivals == ArrivalKind::trace && problem.trace != nullptr;
  return replayed ? problem.trace->tenants() : problem.load.tenants;
}

double bytes_at_start(const ServingProblem& problem) {
  constexpr double lane = 32 << 10, client = 128, tenant = 8, adapter = 8, place = 4;
  const double clients =
      problem.load.arrivals == ArrivalKind::closed ? double(problem.level.clients) : 0;
  double bytes = client * clients + tenant * double(tenants_of(problem)) +
                 adapter * double(problem.load.adapters);
  for (const PoolSetup& pool : problem.pools) {
    const double lanes = double(pool.replicas) * double(pool.context.shard.parallel.pp);
    const double tokens = double(std::min(pool.settings.step_budget(), pool.longest));
    bytes += lanes * (lane + 8 * double(pool.settings.block_size)) + place * tokens;
  }
  return bytes;
}

void check_journey(const Journey& journey) {
  const std::vector<Stage>& stages = journey.stages;
  const bool one = stages.size() == 1 && stages[0].reads && stages[0].writes;
  const bool two = stages.size() == 2 && stages[0].reads && !stages[0].writes && !stages[1].reads &&
                   stages[1].writes && stages[0].pool != stages[1].pool;
  check(one || two, "one pool reads and writes, or one reads and another writes");
}

}  // namespace engine

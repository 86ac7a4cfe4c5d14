// Figures of what a served load may have beside plain requests: several answers, adapters, energy.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/outcome.h"
#include "engine/serving/serving_sim.h"
#include "engine/tasks/serve/serve_pools.h"

namespace engine {

// Seconds that the replicas of a pool were on and worked or waited. Work in which the run ended belongs to neither.
double replica_seconds(const ServingSim& sim, const PoolSetup& pool, std::size_t index);

void report_answers(const Scenario& scenario, const ServingSim& sim, Metrics& metrics);
// Rows of encoders, each as often as it was run, and how long images took.
void add_image_rows(const ServePools& pools, const ServingSim& sim, Outcome& outcome);
void report_images(const ServePools& pools, const ServingSim& sim, Metrics& metrics);
void report_adapters(const Scenario& scenario, const ServingSim& sim, Metrics& metrics);
// Where the rows of each pool end among the kernels of an outcome, in which they follow one another.
using PoolRows = std::vector<std::size_t>;
inline std::span<const KernelRow> rows_of(const std::vector<KernelRow>& kernels,
                                          const PoolRows& ends, std::size_t pool) {
  const std::size_t begin = pool == 0 ? 0 : ends[pool - 1];
  return {kernels.data() + begin, ends[pool] - begin};
}
// From the kernels of the outcome, and what devices draw between steps.
void report_energy(const ServePools& pools, ServingSim& sim, const PoolRows& ends,
                   Outcome& outcome);

}  // namespace engine

// Figures of what a served load may have beside plain requests: several answers, adapters, energy.
#pragma once

#include <span>

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
// What one device of each stage of a pool did, with a draft that is on the same devices.
struct PoolWork {
  Joules energy;
  Flops flops;  // of kernels that compute
  Bytes bytes;  // of these, from and to memory
};
// From that, from the rows of encoders, and from what devices draw between steps.
void report_energy(const ServePools& pools, std::span<const PoolWork> work, ServingSim& sim,
                   Outcome& outcome);

}  // namespace engine

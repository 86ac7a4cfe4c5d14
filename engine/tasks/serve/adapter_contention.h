// How much KV caches under way and collectives that leave the nodes of a deployment slow one another down, where both use the
// same adapters. Each has half of an adapter while both want it. That is counted in the mean over a run: one that wants an adapter for a
// share s of the time makes the other take 1 / (1 - s / 2) times as long.
#pragma once

#include <array>
#include <functional>
#include <span>

#include "engine/serving/serving_sim.h"
#include "engine/tasks/task_table.h"

namespace engine {

struct Contention {
  double transfers = 1;  // KV caches on the adapters, and
  std::array<double, 2> collectives = {1,
                                       1};  // collectives between nodes take so many times as long,
  std::array<double, 2> steps = {
      1, 1};  // and with them steps: of the main deployment, and of the readers
};

// Whether this point asks for it, and KV caches leave nodes over the adapters that collectives use.
bool contends(const Scenario& scenario);

// Runs a simulation with these pools and that journey, the last time with rows.
using RunPools =
    std::function<void(std::span<const PoolSetup> pools, const Journey& journey, bool last)>;

// Runs it until both agree on how slow they are, which `sim` knows after each run.
Contention run_with_contention(std::span<const PoolSetup> pools, const Journey& journey,
                               ServingSim& sim, const RunPools& run);

void report_contention(const Contention& contention, Metrics& metrics);

}  // namespace engine

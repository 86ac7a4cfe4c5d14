// What many steps come to: those that wait for slow devices and links, failures, price, and when a run ends.
#pragma once

#include "engine/outcome.h"
#include "engine/scenario.h"
#include "engine/training/train_step.h"

namespace engine {

// How many times as long as on average what devices send takes over the slowest of their links (train.link_jitter).
double slowest_link(const TrainSettings& train, double devices);

// `metrics` has the figures of an undisturbed step; `behind_links` is by how much it takes longer over the slowest links.
void report_run(const Scenario& scenario, const TrainStepTime& step, Seconds behind_links,
                Metrics& metrics);

}  // namespace engine

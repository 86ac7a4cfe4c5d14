// What many steps come to: those that wait for slow devices and links, failures, price, and when a run ends.
#pragma once

#include "engine/outcome.h"
#include "engine/scenario.h"
#include "engine/training/train_step.h"

namespace engine {

// `metrics` has the figures of an undisturbed step.
void report_run(const Scenario& scenario, const TrainStepTime& step, Metrics& metrics);

}  // namespace engine

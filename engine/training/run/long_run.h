// A run of many steps on devices that differ from moment to moment and sometimes fail.
#pragma once

#include "engine/base/units.h"

namespace engine {

// How much longer than its mean the slowest of `devices` takes, in a share `quantile` of all steps: times of one device are
// lognormal with deviation `jitter` over mean, and independent.
double slowest_factor(double jitter, double devices, double quantile);

// The mean of that over all steps.
double mean_slowest_factor(double jitter, double devices);

struct FailingRun {
  Seconds between_failures;  // of the whole job
  Seconds checkpoint;        // to write one
  Seconds restart;
};

// The work between checkpoints with which a run takes least (J. T. Daly, A higher order estimate of the optimum checkpoint
// interval for restart dumps, 2006; its first term is Young's of 1974).
Seconds best_interval(const FailingRun& run);

// The share of the run's time that is work which no failure undoes, for exponential failures (Daly, equation 13).
double goodput(const FailingRun& run, Seconds interval);

}  // namespace engine

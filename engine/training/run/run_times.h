// How long runs take that fail by chance, and how that differs from run to run.
#pragma once

#include "engine/base/units.h"
#include "engine/training/run/long_run.h"

namespace engine {

// A run takes its failure-free time and the delays of its failures, whose number is Poisson. Jitter of many steps is normal.
// Where failures are many, so is the sum of their delays.
struct RunTimes {
  Seconds failure_free;  // checkpoints included
  Seconds jitter;        // deviation of the failure-free time
  double failures = 0;   // to expect in the failure-free time
  Seconds delay;         // mean of one failure, with what fails again meanwhile
  Seconds delay_spread;  // its deviation

  Seconds mean() const;
  Seconds deviation() const;
  double probability_within(Seconds limit) const;
  // The shortest time within which a share of all runs end.
  Seconds quantile(double share) const;
};

// Of so much work without jitter. The mean is work / goodput.
RunTimes times_of(const FailingRun& run, Seconds interval, Seconds work);

}  // namespace engine

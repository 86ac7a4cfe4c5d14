// How much of the devices is used where two models are on them.
#include <gtest/gtest.h>

#include "tests/support/twins.h"

namespace engine {
namespace {

using toys::figures, toys::served_twins, toys::twins;

// Utilisations are of all of the devices, whatever part of them a model has: the same step does the same work.
TEST(Neighbours, UseIsOfAllOfTheDevices) {
  Scenario scenario = twins(SharingMode::time_slices);
  scenario.sharing.memory = 0.3;
  const auto done = [&](SharingMode mode, double share) {
    scenario.sharing.mode = mode;
    scenario.sharing.share = share;
    const Metrics metrics = figures(scenario);
    EXPECT_GE(metrics.sharing_time.value, 0) << name_of(mode);
    return metrics.model_flops_utilization * metrics.step_time.value;
  };
  const double turns = done(SharingMode::time_slices, 0.5);
  for (const SharingMode mode : {SharingMode::streams, SharingMode::spatial, SharingMode::mig}) {
    for (const double share : {0.3, 0.5, 0.8}) {
      EXPECT_NEAR(done(mode, share) / turns, 1, 1e-9) << name_of(mode) << " " << share;
    }
  }
  // A prefill deployment has its devices to itself.
  Scenario load = served_twins(SharingMode::spatial);
  load.sharing.share = 0.3;
  const double alone = figures(load).model_flops_utilization;
  load.prefill.present = true;
  fill_roles(load);
  EXPECT_NEAR(figures(load).model_flops_utilization / alone, 0.5, 0.05);
}

// A share of the throughput is a rate, at which a model is alone on the devices as it is on its part of them: stating that rate changes
// nothing.
TEST(ServedNeighbours, AShareOfTheThroughputIsARate) {
  for (const SharingMode mode :
       {SharingMode::time_slices, SharingMode::spatial, SharingMode::mig}) {
    Scenario scenario = served_twins(mode);
    scenario.sharing.share = 0.4;
    scenario.load.throughput_fraction = 0.5;
    const Outcome share = evaluate(scenario);
    ASSERT_EQ(share.status, Status::ok) << share.reason;
    scenario.load.throughput_fraction = 0;
    scenario.load.rate = RequestsPerSecond{share.load_rate};
    const Metrics rate = figures(scenario);
    EXPECT_EQ(rate.tpot, share.metrics.tpot) << name_of(mode);
    EXPECT_EQ(rate.sharing_slowdown, share.metrics.sharing_slowdown) << name_of(mode);
    EXPECT_EQ(rate.neighbour_tpot, share.metrics.neighbour_tpot) << name_of(mode);
  }
}

// Who has more of the time is no slower, and who has less of it is no faster, from the smallest share to the largest.
TEST(Neighbours, MoreOfTheTimeIsNeverSlower) {
  for (const double host : {0.0, 1e-3, 20e-3}) {
    for (const double lost : {0.0, 1e-4, 1e-2}) {
      Scenario scenario = twins(SharingMode::time_slices);
      scenario.host.step_overhead = Seconds{host};  // devices rest meanwhile
      fill_roles(scenario);
      scenario.sharing.switch_time = Seconds{lost};
      double before = 1e9, others = 0;
      for (const double share :
           {0.01, 0.02, 0.04, 0.06, 0.1, 0.2, 0.4, 0.5, 0.6, 0.9, 0.95, 0.99}) {
        scenario.sharing.share = share;
        const Metrics metrics = figures(scenario);
        EXPECT_LE(metrics.step_time.value, before * (1 + 1e-9))
            << host << " " << lost << " " << share;
        EXPECT_GE(metrics.neighbour_step_time.value, others * (1 - 1e-9))
            << host << " " << lost << " " << share;
        before = metrics.step_time.value;
        others = metrics.neighbour_step_time.value;
      }
    }
  }
}

}  // namespace
}  // namespace engine

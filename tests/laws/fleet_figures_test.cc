// Figures of fleets that scale or fail: over which time they are, and of whom.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/serving_toys.h"

namespace engine {
namespace {

using toys::served_at;

// A load that begins after a while of nothing costs, per token, what it costs at once: in the while before it nobody is on.
TEST(FleetFigures, RentIsOverTheTimeOfTheRates) {
  Scenario scenario = served_at(20);
  scenario.device.rent = DollarsPerSecond{0.001};
  scenario.load.arrivals = ArrivalKind::curve;
  scenario.load.requests = 2000;  // 100 s
  scenario.slo.ttft.p99 = Seconds{10};
  scenario.serving.replicas = 2;
  scenario.serving.scaling = {.policy = ScalingPolicy::reactive,
                              .min_replicas = 0,
                              .target = 16,
                              .interval = Seconds{0.1},
                              .cold_start = Seconds{1},
                              .cooldown = Seconds{5}};
  scenario.load.curve = "0:20";
  const Metrics at_once = evaluate(scenario).metrics;
  scenario.load.curve = "0:0, 1000:20";
  const Outcome outcome = evaluate(scenario);
  ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
  const Metrics& later = outcome.metrics;
  EXPECT_NEAR(later.output.value / at_once.output.value, 1, 0.05);
  EXPECT_NEAR(later.replicas_mean / at_once.replicas_mean, 1, 0.05);
  EXPECT_NEAR(later.rent / at_once.rent, 1, 0.05);
  EXPECT_NEAR(later.price_usd_per_mtok / at_once.price_usd_per_mtok, 1, 0.05);
  EXPECT_NEAR(later.per_device / at_once.per_device, 1, 0.05);
  EXPECT_NEAR(later.goodput_per_device / at_once.goodput_per_device, 1, 0.05);
  EXPECT_NEAR(later.goodput_per_usd / at_once.goodput_per_usd, 1, 0.05);
  // Somebody is on all the time while there is a load, and no more than there are.
  EXPECT_GE(later.replicas_mean, 0.98);
  EXPECT_LE(later.replicas_mean, 2);
}

// A search whose runs see hardly any failure does not tell the capacity of a fleet that fails.
TEST(FleetFigures, ACapacityWithFewFailuresIsNotDecided) {
  Scenario scenario = served_at(20);
  scenario.serving.replicas = 2;
  scenario.capacity.slo.ttft.p95 = Seconds{0.1};  // as many requests as it takes to tell
  EXPECT_EQ(evaluate(scenario).metrics.capacity_decided, 1);
  scenario.serving.failures = {.mean_time_to_failure = Seconds{3600},
                               .mean_time_to_repair = Seconds{60}};
  const Metrics few = evaluate(scenario).metrics;
  EXPECT_LT(few.failures, 30);
  EXPECT_EQ(few.capacity_decided, 0);
}

// One of four replicas is on, which fails every 10 s and takes 5 s to repair: two thirds of the time it is there, as a fleet of one is.
TEST(FleetFigures, ReplicasThatAreOffAreNotAvailable) {
  Scenario scenario = served_at(5);
  scenario.load.requests = 20'000;
  scenario.serving.failures = {
      .mean_time_to_failure = Seconds{10}, .mean_time_to_repair = Seconds{5}, .attempts = 1000};
  EXPECT_NEAR(evaluate(scenario).metrics.availability, 2.0 / 3, 0.05);
  for (const std::int64_t replicas : {1, 4}) {
    scenario.serving.replicas = replicas;
    scenario.serving.scaling = {
        .policy = ScalingPolicy::scheduled, .cold_start = Seconds{0}, .schedule = "0:1"};
    EXPECT_NEAR(evaluate(scenario).metrics.availability, 2.0 / 3, 0.05) << replicas;
  }
}

// Only those who read follow a timetable: one of four in the first half.
TEST(FleetFigures, ReadersThatScaleAreCounted) {
  Scenario scenario = served_at(20);
  scenario.load.requests = 2000;  // 100 s
  scenario.load.arrivals = ArrivalKind::curve;
  scenario.load.curve = "0:20";
  scenario.prefill.present = true;
  scenario.transfer.link = {.bandwidth = BytesPerSecond{1e12}, .latency = Seconds{1e-6}};
  fill_roles(scenario);
  scenario.prefill.deployment.serving.replicas = 4;
  scenario.prefill.deployment.serving.scaling = {
      .policy = ScalingPolicy::scheduled, .cold_start = Seconds{0}, .schedule = "0:1, 50:4"};
  const Outcome outcome = evaluate(scenario);
  ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
  EXPECT_TRUE(std::isnan(outcome.metrics.replicas_mean));
  EXPECT_TRUE(std::isnan(outcome.metrics.replica_starts));
  EXPECT_NEAR(outcome.metrics.prefill_replicas_mean, 2.5, 0.1);
  EXPECT_EQ(outcome.metrics.prefill_replica_starts, 3);
  EXPECT_EQ(outcome.metrics.requests_held, 0);
}

}  // namespace
}  // namespace engine

// Replicas that come and go: nothing is lost with them, the closed form equals stepping, and a fixed number is
// what it always was.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "engine/evaluate.h"
#include "tests/support/serving_laboratory.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

using toys::Laboratory;

// A random case whose replicas follow its load.
struct Scaled {
  Laboratory lab;

  explicit Scaled(std::uint64_t number) : lab(toys::random_case(number)) {
    toys::Dice dice(33'000'000 + number);
    ServingSettings& serving = lab.made.scenario.serving;
    serving.replicas = dice.whole(2, 6);
    serving.router = dice.one_of<RouterName>();
    serving.scaling = {
        .policy = dice.chance(0.5) ? ScalingPolicy::reactive : ScalingPolicy::predictive,
        .min_replicas = dice.whole(0, serving.replicas),
        .target = dice.between(1, 6),
        .interval = Seconds{dice.between(0.1, 0.5)},
        .cold_start = Seconds{dice.between(0, 1)},
        .cooldown = Seconds{dice.between(0, 1)}};
  }
  ServingStats::Summary run(bool stepping = false) {
    lab.made.scenario.serving.stepping = stepping;
    return lab.run();
  }
};

TEST(ServingScaling, NothingIsLostWithAReplicaThatGoes) {
  double starts = 0, cases_below = 0;
  for (std::uint64_t number = 0; number < 300; ++number) {
    Scaled scaled(number);
    const ServingStats::Summary summary = scaled.run();
    const std::string which = "case " + std::to_string(number);
    EXPECT_EQ(summary.tokens_in + summary.tokens_out + summary.tokens_refused,
              scaled.lab.offered_tokens())
        << which;
    for (const Replica& replica : scaled.lab.sim.replicas()) {
      EXPECT_EQ(replica.outstanding(), 0) << which;
      EXPECT_EQ(replica.pool().free(), replica.pool().total()) << which;
    }
    const Scenario& scenario = scaled.lab.made.scenario;
    const Scaler& scaler = scaled.lab.sim.scaler(0);
    const double makespan = scaled.lab.sim.makespan();
    const double on = scaler.on_seconds(makespan);
    // Whoever worked was on, and nobody was on for longer than the run.
    EXPECT_LE(summary.busy, on * double(scenario.parallel.pp) * (1 + 1e-9)) << which;
    EXPECT_LE(on, makespan * double(scenario.serving.replicas) * (1 + 1e-9)) << which;
    EXPECT_GE(on, makespan * double(scenario.serving.scaling.min_replicas) * (1 - 1e-9)) << which;
    starts += scaler.starts();
    cases_below += on < 0.9 * makespan * double(scenario.serving.replicas) ? 1 : 0;
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(starts, 80);
  EXPECT_GT(cases_below, 50);
}

TEST(ServingScaling, TheClosedFormEqualsStepping) {
  for (std::uint64_t number = 1000; number < 1200; ++number) {
    Scaled scaled(number);
    const ServingStats::Summary fast = scaled.run();
    const double on = scaled.lab.sim.scaler(0).on_seconds(scaled.lab.sim.makespan());
    std::map<std::int64_t, RequestRow> rows;
    for (const RequestRow& row : scaled.lab.rows) rows[row.number] = row;
    const ServingStats::Summary slow = scaled.run(true);
    const std::string which = "case " + std::to_string(number);
    for (const RequestRow& row : scaled.lab.rows) {
      const RequestRow& other = rows[row.number];
      EXPECT_EQ(row.replica, other.replica) << which;
      if (row.end != RequestEnd::finished) continue;
      EXPECT_NEAR(row.finish.value / other.finish.value, 1, 1e-9) << which;
    }
    EXPECT_NEAR(fast.busy, slow.busy, 1e-9 * fast.busy) << which;
    EXPECT_NEAR(scaled.lab.sim.scaler(0).on_seconds(scaled.lab.sim.makespan()), on, 1e-9 * on);
    ASSERT_FALSE(HasFailure());
  }
}

TEST(ServingScaling, AFixedTimetableIsAFixedNumber) {
  for (const std::int64_t replicas : {1, 2, 3}) {
    Scenario scenario = toys::scenario();
    scenario.task = Task::serve;
    scenario.load.requests = 300;
    scenario.load.rate = RequestsPerSecond{40};
    scenario.load.lengths = {.prompt = 200, .output = 20};
    scenario.device.rent = DollarsPerSecond{0.001};
    scenario.serving.router = router_named("least_outstanding");
    scenario.serving.replicas = replicas;
    const Metrics fixed = evaluate(scenario).metrics;
    scenario.serving.replicas = 3;
    scenario.serving.scaling.policy = ScalingPolicy::scheduled;
    scenario.serving.scaling.schedule = "0:" + std::to_string(replicas);
    const Outcome outcome = evaluate(scenario);
    ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
    EXPECT_EQ(outcome.metrics.e2e, fixed.e2e);
    EXPECT_EQ(outcome.metrics.ttft_p99, fixed.ttft_p99);
    EXPECT_EQ(outcome.metrics.makespan, fixed.makespan);
    EXPECT_DOUBLE_EQ(outcome.metrics.replicas_mean, double(replicas));
    EXPECT_NEAR(outcome.metrics.rent / fixed.rent, 1, 1e-12);
    EXPECT_NEAR(outcome.metrics.device_hours / fixed.device_hours, 1, 1e-12);
    EXPECT_NEAR(outcome.metrics.utilization / fixed.utilization, 1, 1e-2);
  }
}

// A fleet that may not shrink is one of a fixed number, in what is measured of it, too.
TEST(ServingScaling, AllThatThereAreAtLeastIsAFixedNumber) {
  for (const ScalingPolicy policy : {ScalingPolicy::reactive, ScalingPolicy::predictive}) {
    for (const std::int64_t requests : {0, 300}) {
      Scenario scenario = toys::scenario();
      scenario.task = Task::serve;
      scenario.load.requests = requests;
      scenario.load.rate = RequestsPerSecond{40};
      scenario.load.lengths = {.prompt = 200, .output = 20};
      scenario.serving.replicas = 3;
      const Metrics fixed = evaluate(scenario).metrics;
      scenario.serving.scaling = {.policy = policy, .min_replicas = 3};
      const Metrics scaled = evaluate(scenario).metrics;
      EXPECT_EQ(scaled.ttft, fixed.ttft);
      EXPECT_EQ(scaled.ttft_p99, fixed.ttft_p99);
      EXPECT_EQ(scaled.tpot, fixed.tpot);
      EXPECT_EQ(scaled.e2e, fixed.e2e);
      EXPECT_EQ(scaled.measured_from, fixed.measured_from);
      EXPECT_DOUBLE_EQ(scaled.replicas_mean, 3);
    }
  }
}

// Replicas that are off serve nobody: per device, a fleet of which one replica is on is what a single replica is.
TEST(ServingScaling, FiguresPerDeviceAreOfThoseThatAreOn) {
  Scenario scenario = toys::scenario();
  scenario.task = Task::serve;
  scenario.load.requests = 400;
  scenario.load.rate = RequestsPerSecond{20};
  scenario.load.lengths = {.prompt = 200, .output = 20};
  const Metrics alone = evaluate(scenario).metrics;
  scenario.serving.replicas = 4;
  scenario.serving.scaling.policy = ScalingPolicy::scheduled;
  scenario.serving.scaling.schedule = "0:1";
  const Outcome outcome = evaluate(scenario);
  ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
  const Metrics& fleet = outcome.metrics;
  EXPECT_NEAR(fleet.replicas_mean, 1, 1e-9);
  EXPECT_NEAR(fleet.per_device / alone.per_device, 1, 1e-9);
  EXPECT_NEAR(fleet.output_per_device / alone.output_per_device, 1, 1e-9);
  EXPECT_NEAR(fleet.goodput_per_device / alone.goodput_per_device, 1, 1e-9);
  EXPECT_EQ(fleet.devices, 4 * alone.devices);
}

}  // namespace
}  // namespace engine

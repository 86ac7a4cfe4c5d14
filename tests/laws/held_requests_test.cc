// Requests that nobody can take because all replicas are off or have failed: who would come too late is turned away, as it is
// where replicas are busy.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engine/evaluate.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

// One request in a hundred seconds, each of which finds nobody on.
Scenario seldom(double cold_start) {
  Scenario scenario = toys::scenario();
  scenario.task = Task::serve;
  scenario.load.requests = 30;
  scenario.load.arrivals = ArrivalKind::deterministic;
  scenario.load.rate = RequestsPerSecond{0.01};
  scenario.load.measure = MeasureKind::whole;
  scenario.load.lengths = {.prompt = 200, .output = 20};
  scenario.slo.ttft.p99 = Seconds{5};
  scenario.serving.admission.shed_late = true;
  scenario.serving.scaling = {.policy = ScalingPolicy::reactive,
                              .min_replicas = 0,
                              .target = 4,
                              .interval = Seconds{1},
                              .cold_start = Seconds{cold_start},
                              .cooldown = Seconds{10}};
  return scenario;
}

Metrics figures(const Scenario& scenario) {
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome.metrics;
}

Scenario in_two_pools(Scenario scenario, TransferInitiative initiative) {
  scenario.prefill.present = true;
  scenario.prefill.deployment = scenario;
  scenario.transfer.initiative = initiative;
  return scenario;
}

// One pool, and two of them either way.
std::vector<Scenario> in_all_pools(const Scenario& scenario) {
  return {scenario, in_two_pools(scenario, TransferInitiative::pull),
          in_two_pools(scenario, TransferInitiative::push)};
}

TEST(HeldRequests, AColdStartBeyondTheLimitTurnsAwayWhoeverFindsNobodyOn) {
  for (const Scenario& scenario : in_all_pools(seldom(7))) {
    EXPECT_EQ(
        evaluate(scenario).reason,
        "not one of the 30 requests is answered: 0 do not fit, 30 are shed, 0 fail with their "
        "replicas");
  }
}

TEST(HeldRequests, AColdStartWithinTheLimitTurnsNobodyAway) {
  for (Scenario scenario : in_all_pools(seldom(3))) {
    const Metrics shed = figures(scenario);
    EXPECT_EQ(shed.requests_shed, 0);
    EXPECT_EQ(shed.requests_finished, 30);
    EXPECT_EQ(shed.requests_held, 30);
    scenario.serving.admission = scenario.prefill.deployment.serving.admission = {};
    EXPECT_EQ(figures(scenario).ttft.value, shed.ttft.value);
  }
}

// The replica that was started for somebody who was turned away serves those who come while it is on.
TEST(HeldRequests, WhoWasStartedForNothingServesTheNext) {
  Scenario scenario = seldom(7);
  scenario.load.rate = RequestsPerSecond{0.1};
  scenario.serving.scaling.cooldown = Seconds{60};
  const Metrics shed = figures(scenario);
  EXPECT_EQ(shed.requests_shed, 1);
  EXPECT_EQ(shed.requests_finished, 29);
  EXPECT_LE(shed.ttft_p99.value, 5);
}

// A timetable says when somebody will be on again.
TEST(HeldRequests, WhoComesInTheNightIsTurnedAwayUnlessTheMorningIsNear) {
  Scenario scenario = seldom(2);
  scenario.load.requests = 10;
  scenario.load.rate = RequestsPerSecond{1};
  scenario.serving.scaling.policy = ScalingPolicy::scheduled;
  scenario.serving.scaling.schedule = "0:0, 6:1";
  // On from 8 s: who comes at 0, 1, 2 or 3 s would have to wait for 5 s and to be read.
  const Metrics shed = figures(scenario);
  EXPECT_EQ(shed.requests_shed, 4);
  EXPECT_EQ(shed.requests_finished, 6);
  EXPECT_LE(shed.ttft_p99.value, 5 + 1e-9);
}

// How long a repair takes is not known before: who waited for it is judged then.
TEST(HeldRequests, WhoWaitedTooLongForARepairIsTurnedAwayThen) {
  Scenario scenario = seldom(0);
  scenario.load.requests = 2000;
  scenario.load.rate = RequestsPerSecond{1};
  scenario.serving.scaling = {};
  scenario.serving.failures = {.mean_time_to_failure = Seconds{200},
                               .mean_time_to_repair = Seconds{20}};
  for (Scenario any : in_all_pools(scenario)) {
    any.serving.failures = any.prefill.deployment.serving.failures = scenario.serving.failures;
    const Metrics shed = figures(any);
    EXPECT_GT(shed.requests_shed, 10);
    EXPECT_EQ(shed.requests_shed + shed.requests_finished + shed.requests_failed, 2000);
    any.serving.admission = any.prefill.deployment.serving.admission = {};
    const Metrics all = figures(any);
    EXPECT_LT(shed.ttft_p99.value, all.ttft_p99.value);
  }
}

// Those who waited come to a queue at one moment, and a queue that takes no more takes no more of them.
TEST(HeldRequests, AQueueThatIsFullTurnsAwayWhoWaitedToo) {
  Scenario scenario = seldom(20);
  scenario.slo = {};
  scenario.serving.admission = {.max_queue = 4};
  scenario.load.requests = 10;
  scenario.load.rate = RequestsPerSecond{1};
  const Metrics shed = figures(scenario);
  EXPECT_EQ(shed.requests_held, 10);
  EXPECT_EQ(shed.requests_shed, 6);
  EXPECT_EQ(shed.requests_finished, 4);
}

}  // namespace
}  // namespace engine

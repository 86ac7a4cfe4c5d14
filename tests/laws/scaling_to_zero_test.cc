// Fleets that fall to nothing: who comes first waits for a cold start and is not lost, nobody pays for what is off, and a
// replica that was off begins with an empty cache.
#include <gtest/gtest.h>

#include <string>

#include "engine/evaluate.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

// One request in a hundred seconds, each of which finds nobody on.
Scenario seldom() {
  Scenario scenario = toys::scenario();
  scenario.task = Task::serve;
  scenario.load.requests = 50;
  scenario.load.arrivals = ArrivalKind::deterministic;
  scenario.load.rate = RequestsPerSecond{0.01};
  scenario.load.lengths = {.prompt = 200, .output = 20};
  scenario.device.rent = DollarsPerSecond{0.001};
  scenario.serving.replicas = 3;
  scenario.serving.scaling = {.policy = ScalingPolicy::reactive,
                              .min_replicas = 0,
                              .target = 4,
                              .interval = Seconds{1},
                              .cold_start = Seconds{7},
                              .cooldown = Seconds{10}};
  return scenario;
}

TEST(ScalingToZero, AColdStartIsInTheFirstTokens) {
  for (const ScalingPolicy policy : {ScalingPolicy::reactive, ScalingPolicy::predictive}) {
    for (const double cold : {0.0, 0.25, 7.0, 40.0}) {
      Scenario scenario = seldom();
      scenario.load.measure = MeasureKind::whole;
      scenario.serving.scaling.policy = policy;
      scenario.serving.scaling.cold_start = Seconds{cold};
      const Metrics zero = evaluate(scenario).metrics;
      scenario.serving.replicas = 1;
      scenario.serving.scaling = {};
      const Metrics warm = evaluate(scenario).metrics;
      EXPECT_NEAR(zero.ttft.value, warm.ttft.value + cold, 1e-9);
      EXPECT_NEAR(zero.ttft_p99.value, warm.ttft_p99.value + cold, 1e-9);
      EXPECT_NEAR(zero.tpot / warm.tpot, 1, 1e-9);
      EXPECT_EQ(zero.requests_finished, warm.requests_finished);
      // A forecast may ask for more than the one that is woken.
      EXPECT_GE(zero.replica_starts, 50);
      if (policy == ScalingPolicy::reactive) {
        EXPECT_EQ(zero.replica_starts, 50);
      }
      EXPECT_EQ(zero.requests_held, cold > 0 ? 50 : 0);
    }
  }
}

// On from the request that starts it until nobody came for the cooldown, seen at a look: not less, and one look more at most.
TEST(ScalingToZero, NobodyPaysForWhatIsOff) {
  Scenario scenario = seldom();
  const Outcome outcome = evaluate(scenario);
  ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
  const Metrics& zero = outcome.metrics;
  const double served = 7 + zero.e2e.value - zero.ttft.value, on = zero.replicas_mean * 100;
  EXPECT_GE(on, served + 10 - 1);
  EXPECT_LE(on, served + 10 + 3);
  scenario.serving.scaling.min_replicas = 1;
  const Metrics one = evaluate(scenario).metrics;
  EXPECT_NEAR(one.replicas_mean, 1, 1e-9);
  EXPECT_NEAR(zero.rent / one.rent, zero.replicas_mean, 1e-9);
  EXPECT_GT(one.ttft.value, 0);
  EXPECT_LT(one.ttft.value, zero.ttft.value - 6.9);
}

// Both pools are woken by the request that arrives, whoever sets blocks aside: it waits for one cold start, not for two.
TEST(ScalingToZero, TwoPoolsWakeTogether) {
  for (const TransferInitiative initiative : {TransferInitiative::pull, TransferInitiative::push}) {
    Scenario scenario = seldom();
    scenario.load.measure = MeasureKind::whole;
    scenario.prefill.present = true;
    scenario.prefill.deployment = scenario;
    scenario.transfer.initiative = initiative;
    const Outcome outcome = evaluate(scenario);
    ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
    scenario.serving.scaling = scenario.prefill.deployment.serving.scaling = {};
    const Metrics warm = evaluate(scenario).metrics;
    EXPECT_NEAR(outcome.metrics.ttft.value, warm.ttft.value + 7, 1e-6);
    EXPECT_EQ(outcome.metrics.requests_finished, warm.requests_finished);
  }
}

// A timetable with nights: who comes at night is answered in the morning.
TEST(ScalingToZero, WhoComesAtNightWaitsForTheMorning) {
  Scenario scenario = seldom();
  scenario.load.measure = MeasureKind::whole;
  scenario.load.requests = 10;
  scenario.serving.scaling = {.policy = ScalingPolicy::scheduled,
                              .interval = Seconds{1},
                              .cold_start = Seconds{5},
                              .schedule = "0:1, 150:0, 950:1"};
  const Outcome outcome = evaluate(scenario);
  ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
  EXPECT_EQ(outcome.metrics.requests_finished, 10);
  EXPECT_GE(outcome.metrics.requests_held, 7);
  EXPECT_LT(outcome.metrics.replicas_mean, 0.3);
}

// Whatever a replica had cached is gone when it goes off: its next life reads the shared prompt again.
TEST(ScalingToZero, AReplicaThatWasOffHasAnEmptyCache) {
  Scenario scenario = seldom();
  scenario.load.measure = MeasureKind::whole;
  scenario.load.shared_prefix = 160;
  scenario.serving.prefix_caching = true;
  const auto hits = [&] {
    const Outcome outcome = evaluate(scenario);
    EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
    return outcome.metrics.prefix_hit_rate;
  };
  EXPECT_EQ(hits(), 0);
  scenario.serving.scaling.cooldown = Seconds{200};  // it is still on when the next one comes
  EXPECT_GT(hits(), 0.7);
  // The same where another replica stays on: only what the first one reads is found.
  scenario.serving.scaling = {.policy = ScalingPolicy::scheduled,
                              .interval = Seconds{1},
                              .cold_start = Seconds{0},
                              .schedule = "0:2, 1250:1, 1350:2"};
  scenario.serving.router = router_named("round_robin");
  const double twice = hits();
  scenario.serving.scaling.schedule = "0:2";
  EXPECT_LT(twice, hits());
}

}  // namespace
}  // namespace engine

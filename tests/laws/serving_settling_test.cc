// What is measured is a system that is all there: clients have come, fleets have followed their load, curves have been gone along.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/workload/request_source.h"
#include "tests/support/serving_toys.h"

namespace engine {
namespace {

using toys::served_at;

Metrics figures(const Scenario& scenario) {
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome.metrics;
}

TEST(Settling, ClientsThatComeOneByOneAreMeasuredOnceAllHave) {
  Scenario scenario = served_at(1);
  scenario.load.arrivals = ArrivalKind::closed;
  scenario.load.clients = 12;
  const double all = figures(scenario).throughput.value;
  for (const double ramp : {3.0, 10.0, 60.0}) {
    scenario.load.ramp = Seconds{ramp};
    const Metrics metrics = figures(scenario);
    EXPECT_NEAR(metrics.throughput.value / all, 1, 0.02) << ramp;
    EXPECT_GE(metrics.measured_from.value, ramp);
    EXPECT_EQ(metrics.steady, 1) << ramp;
  }
  // Nor does a run count as steady that is over before.
  scenario.load.requests = 400;
  EXPECT_EQ(figures(scenario).steady, 0);
}

// Sessions of which most are in a pause when the load ends: fewer answers than there are sessions are chance, not a measured part.
TEST(Settling, NoMoreSessionsAreOpenThanAnswersAreMeasured) {
  int settled = 0;
  for (const double rate : {1.0, 3.0, 10.0, 30.0}) {
    for (const std::int64_t requests : {200, 400, 600, 1000, 3000}) {
      Scenario scenario = served_at(rate);
      scenario.serving.replicas = 4;
      scenario.load.turns = 6;
      scenario.load.think_time = Seconds{0.5};
      scenario.load.requests = requests;
      const Metrics metrics = figures(scenario);
      const double lasts = 5 * 0.5 + 6 * metrics.e2e.value;
      EXPECT_GE(metrics.requests_measured, std::min(0.5 * rate * lasts, 0.3 * double(requests)))
          << rate << " " << requests;
      settled += metrics.steady > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(settled, 3);
}

TEST(Settling, FleetsAreMeasuredOnceTheyFollowTheirLoad) {
  Scenario fixed = served_at(150);
  fixed.serving.replicas = 4;
  const Metrics all = figures(fixed);
  for (const ScalingPolicy policy : {ScalingPolicy::reactive, ScalingPolicy::predictive}) {
    Scenario scenario = fixed;
    scenario.serving.scaling = {.policy = policy,
                                .target = 8,
                                .interval = Seconds{1},
                                .cold_start = Seconds{20},
                                .cooldown = Seconds{30}};
    const Metrics metrics = figures(scenario);
    EXPECT_GE(metrics.measured_from.value, 52);
    EXPECT_EQ(metrics.steady, 1);
    EXPECT_NEAR(metrics.throughput.value / all.throughput.value, 1, 0.05);
    EXPECT_LT(metrics.ttft_p95.value, 2);  // with one replica alone: 20 s and more
  }
}

// A price follows from how many replicas are on: that is known as well as the throughput is, or the row says that it is not.
TEST(Settling, TheSizeOfAFleetIsWatchedForLongEnough) {
  for (const ScalingPolicy policy : {ScalingPolicy::reactive, ScalingPolicy::predictive}) {
    for (const double target : {3.0, 5.0}) {
      Scenario scenario = served_at(60);
      scenario.serving.replicas = 6;
      scenario.serving.router = router_named("least_outstanding");
      scenario.serving.scaling = {.policy = policy,
                                  .target = target,
                                  .interval = Seconds{2},
                                  .cold_start = Seconds{10},
                                  .cooldown = Seconds{60}};
      const double follows = 2 * 2 + 10 + 60;
      const Metrics metrics = figures(scenario);
      EXPECT_EQ(metrics.precision_met, 1);
      // Ten times as long as it takes to follow; or as long as one replica more for one such time is 2% of all.
      const double rounds = (metrics.measured_until.value - metrics.measured_from.value) / follows;
      EXPECT_GE(rounds, std::min(10.0, 50 / metrics.replicas_mean)) << target;
      scenario.load.requests = std::int64_t(60 * 30 * follows);
      const Metrics longer = figures(scenario);
      EXPECT_EQ(longer.precision_met, 1);
      EXPECT_NEAR(metrics.replicas_mean / longer.replicas_mean, 1, 0.1) << target;
      // A stated number may be too few to tell.
      scenario.load.requests = std::int64_t(60 * 6 * follows);
      EXPECT_EQ(figures(scenario).precision_met, 0);
    }
  }
}

TEST(Settling, AFleetCarriesWhatItsReplicasDo) {
  Scenario fixed = served_at(1);
  fixed.serving.replicas = 4;
  fixed.capacity.slo.ttft.p95 = Seconds{1};
  const double all = figures(fixed).capacity.value;
  Scenario scaled = fixed;
  scaled.serving.scaling = {.policy = ScalingPolicy::reactive,
                            .target = 8,
                            .interval = Seconds{1},
                            .cold_start = Seconds{20},
                            .cooldown = Seconds{30}};
  EXPECT_GT(figures(scaled).capacity.value, 0.8 * all);
}

// Also where a thousand requests come in less time than one of them takes.
TEST(Settling, CapacityGrowsWithTheReplicas) {
  for (const std::int64_t replicas : {1, 2, 8, 16}) {
    Scenario scenario = served_at(1);
    scenario.serving.max_num_seqs = 160;  // 2 s each: 80 a second
    scenario.serving.kv_blocks = 100'000;
    scenario.load.lengths.output = 200;
    scenario.serving.replicas = replicas;
    scenario.capacity.slo.ttft.p95 = Seconds{1};
    const Metrics metrics = figures(scenario);
    EXPECT_GT(metrics.capacity.value, 0.93 * 80 * double(replicas)) << replicas;
    EXPECT_LT(metrics.capacity.value, 1.02 * 80 * double(replicas)) << replicas;
  }
}

// Until the first sessions have come back there are first turns only, which are the cheapest: whatever the pause between turns, a
// system carries as many sessions, and those that it is said to carry it does.
TEST(Settling, SessionsAreMeasuredOnceLaterTurnsHaveCome) {
  Scenario scenario = served_at(1);
  scenario.load.turns = 4;
  scenario.capacity.slo.ttft.p95 = Seconds{1};
  const double at_once = figures(scenario).capacity.value;
  for (const double pause : {5.0, 30.0}) {
    scenario.load.think_time = Seconds{pause};
    for (const std::uint64_t seed : {1, 2, 3}) {
      scenario.seed = seed;
      const Metrics metrics = figures(scenario);
      EXPECT_NEAR(metrics.capacity.value / at_once, 1, 0.1) << pause;
      EXPECT_EQ(metrics.capacity_decided, 1) << pause;
      EXPECT_GE(metrics.measured_from.value, 6 * pause);
      EXPECT_LE(metrics.ttft_p95.value, 1);
    }
  }
}

// Clients who are answered fast make more requests than a run usually has before their fleet has given up what it does not need.
TEST(Settling, AClosedLoopIsMeasuredOnceItsFleetHasSettled) {
  Scenario scenario = served_at(1);
  scenario.load.arrivals = ArrivalKind::closed;
  scenario.load.clients = 128;  // 0.2 s each: 640 a second
  scenario.serving.replicas = 16;
  scenario.serving.router = router_named("least_outstanding");
  scenario.serving.scaling = {.policy = ScalingPolicy::reactive,
                              .target = 16,
                              .interval = Seconds{1},
                              .cold_start = Seconds{20},
                              .cooldown = Seconds{100}};
  const Metrics metrics = figures(scenario);
  EXPECT_EQ(metrics.steady, 1);
  EXPECT_GE(metrics.measured_from.value, 122);
  EXPECT_NEAR(metrics.replicas_mean, 8, 0.1);
  EXPECT_NEAR(metrics.throughput.value, 640, 20);
}

TEST(Settling, CurvesAreGoneAlongToTheirEnd) {
  Scenario scenario = served_at(1);
  scenario.load.arrivals = ArrivalKind::curve;
  scenario.load.curve = "0:2, 600:50, 1200:2";
  EXPECT_EQ(total_requests(scenario.load, nullptr), 600 * (2 + 50 + 2));
  EXPECT_GT(figures(scenario).makespan.value, 1500);
  // A stated number counts, and short ones last on.
  scenario.load.requests = 200;
  EXPECT_EQ(total_requests(scenario.load, nullptr), 200);
  scenario.load.requests = 0;
  scenario.load.curve = "0:2, 10:5";
  EXPECT_EQ(total_requests(scenario.load, nullptr), 1000);
}

// A load that lasts as long as it likes lasts until the timetable is over, and until its last number has held as long as the one before
// it: 600 s with four replicas, 1,200 s with one, 1,200 s with three.
TEST(Settling, TimetablesAreFollowedToTheirEnd) {
  for (const bool loop : {false, true}) {
    Scenario scenario = served_at(20);
    scenario.serving.replicas = 4;
    scenario.serving.scaling = {.policy = ScalingPolicy::scheduled,
                                .cold_start = Seconds{0},
                                .schedule = "0:4, 600:1, 1800:3"};
    if (loop) {
      scenario.load.arrivals = ArrivalKind::closed;
      scenario.load.clients = 8;
    }
    const Metrics metrics = figures(scenario);
    EXPECT_NEAR(metrics.measured_until.value, 3000, 30) << loop;
    EXPECT_LT(metrics.measured_from.value, 60) << loop;
    EXPECT_NEAR(metrics.replicas_mean, (600 * 4 + 1200 * 1 + 1200 * 3) / 3000.0, 0.03) << loop;
  }
  // A short one leaves a thousand requests all the same.
  Scenario scenario = served_at(20);
  scenario.serving.replicas = 2;
  scenario.serving.scaling = {
      .policy = ScalingPolicy::scheduled, .cold_start = Seconds{0}, .schedule = "0:1, 5:2"};
  EXPECT_NEAR(figures(scenario).measured_until.value, 50, 5);
  // What is stated counts.
  scenario.serving.scaling.schedule = "0:1, 5000:2";
  scenario.load.requests = 400;
  EXPECT_LT(figures(scenario).measured_until.value, 30);
}

}  // namespace
}  // namespace engine

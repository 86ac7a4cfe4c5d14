// Whether a load is kept up with, however even or bursty it is, whatever fails meanwhile, and however long the run is.
#include <gtest/gtest.h>

#include <vector>

#include "tests/support/serving_toys.h"

namespace engine {
namespace {

using toys::served_at;

// One request at a time takes 0.2 s: five a second can be served.
Scenario one_at_a_time(double share, std::int64_t replicate) {
  Scenario scenario = served_at(5 * share);
  scenario.serving.max_num_seqs = 1;
  scenario.replicate = replicate;
  return scenario;
}

Saturation verdict_of(const Scenario& scenario) {
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome.saturation;
}

bool keeps_up(Saturation saturation) {
  return saturation == Saturation::stable || saturation == Saturation::backlogged;
}

// What chance brings to a queue follows from how unevenly requests come and how long they are. Answers of one length bring nothing, so
// that 5% too much show soon.
TEST(ServingVerdict, AnswersOfOneLengthHideNoOverload) {
  for (std::int64_t replicate = 0; replicate < 12; ++replicate) {
    EXPECT_EQ(verdict_of(one_at_a_time(1.05, replicate)), Saturation::overloaded) << replicate;
    EXPECT_TRUE(keeps_up(verdict_of(one_at_a_time(0.9, replicate)))) << replicate;
  }
}

TEST(ServingVerdict, EvenArrivalsHideNoOverload) {
  for (std::int64_t replicate = 0; replicate < 6; ++replicate) {
    Scenario scenario = one_at_a_time(1.02, replicate);
    scenario.load.arrivals = ArrivalKind::gamma;
    scenario.load.cv = 0.3;
    EXPECT_EQ(verdict_of(scenario), Saturation::overloaded) << replicate;
    scenario.load.rate = RequestsPerSecond{5 * 0.95};
    EXPECT_TRUE(keeps_up(verdict_of(scenario))) << replicate;
  }
}

// The queue behind a burst is long, and worked off.
TEST(ServingVerdict, BurstsAreNoOverload) {
  for (const double cv : {3, 10}) {
    for (std::int64_t replicate = 0; replicate < 6; ++replicate) {
      Scenario scenario = one_at_a_time(0.9, replicate);
      scenario.load.arrivals = ArrivalKind::gamma;
      scenario.load.cv = cv;
      EXPECT_NE(verdict_of(scenario), Saturation::overloaded) << cv << ", " << replicate;
      scenario.load.rate = RequestsPerSecond{5 * 1.5};
      EXPECT_EQ(verdict_of(scenario), Saturation::overloaded) << cv << ", " << replicate;
    }
  }
}

// What piles up during one repair is worked off afterwards: three quarters of what all replicas serve are no overload because of it.
TEST(ServingVerdict, OneOutageIsNoOverload) {
  int failed = 0;
  for (std::int64_t replicate = 0; replicate < 20; ++replicate) {
    Scenario scenario = served_at(60);
    scenario.replicate = replicate;
    scenario.serving.failures = {.mean_time_to_failure = Seconds{600},
                                 .mean_time_to_repair = Seconds{60}};
    const Outcome outcome = evaluate(scenario);
    failed += outcome.metrics.failures > 0 ? 1 : 0;
    EXPECT_NE(outcome.saturation, Saturation::overloaded) << replicate;
    // Three times as much is, with or without repairs.
    scenario.load.rate = RequestsPerSecond{240};
    EXPECT_EQ(verdict_of(scenario), Saturation::overloaded) << replicate;
  }
  EXPECT_GT(failed, 5);
}

// Long runs are summed up piece by piece, the first of which has 131,072 requests. That is nothing a row could tell.
TEST(ServingVerdict, LongRunsAreJudgedByMoreThanTheirLastPiece) {
  for (const std::int64_t requests : {131'000, 131'072, 131'080, 131'500, 150'000}) {
    Scenario scenario = one_at_a_time(0.9, 0);
    scenario.slo.ttft.p95 = Seconds{60};
    scenario.load.requests = requests;
    const Outcome outcome = evaluate(scenario);
    EXPECT_EQ(outcome.saturation, Saturation::backlogged) << requests;
    EXPECT_EQ(outcome.metrics.precision_met, 1) << requests;
  }
}

// A run that has seen all of a timetable is over, wherever chance puts its last request.
TEST(ServingVerdict, ATimetableIsNotServedTwice) {
  for (std::int64_t replicate = 0; replicate < 8; ++replicate) {
    Scenario scenario = served_at(20);
    scenario.replicate = replicate;
    scenario.serving.replicas = 4;
    scenario.serving.scaling = {.policy = ScalingPolicy::scheduled,
                                .cold_start = Seconds{0},
                                .schedule = "0:4, 200:1, 600:3"};
    const Metrics metrics = evaluate(scenario).metrics;
    EXPECT_NEAR(metrics.measured_until.value, 1000, 1e-6) << replicate;
    EXPECT_LT(metrics.makespan.value, 1100) << replicate;
  }
}

// Thirty-two replicas that are all on all the time need not be watched for long, as two that may be three would.
TEST(ServingVerdict, AFleetThatStaysAsItIsIsSoonKnown) {
  Scenario scenario = served_at(400);
  scenario.serving.replicas = 32;
  scenario.serving.router = router_named("least_outstanding");
  scenario.serving.scaling = {.policy = ScalingPolicy::reactive,
                              .target = 2,
                              .interval = Seconds{1},
                              .cold_start = Seconds{8},
                              .cooldown = Seconds{50}};
  const double round = 2 * 1 + 8 + 50;
  const Metrics metrics = evaluate(scenario).metrics;
  EXPECT_EQ(metrics.precision_met, 1);
  EXPECT_NEAR(metrics.replicas_mean, 32, 1e-6);
  EXPECT_GE(metrics.measured_until.value - metrics.measured_from.value, 2 * round);
  EXPECT_LT(metrics.measured_until.value - metrics.measured_from.value, 10 * round);
}

// One replica that is up half of the time, and clients who wait for its repair: a window without an outage has twice the rate. However a
// load comes, what a steady row of automatic length says is what a long run says.
TEST(ServingVerdict, AutomaticRunsWaitForFailures) {
  for (const ArrivalKind arrivals : {ArrivalKind::closed, ArrivalKind::poisson}) {
    for (std::int64_t replicate = 0; replicate < 4; ++replicate) {
      Scenario scenario = served_at(20);
      scenario.load.arrivals = arrivals;
      scenario.load.clients = 16;
      scenario.replicate = replicate;
      scenario.serving.failures = {.mean_time_to_failure = Seconds{10},
                                   .mean_time_to_repair = Seconds{10},
                                   .attempts = 1000};
      const Metrics metrics = evaluate(scenario).metrics;
      EXPECT_GE(metrics.failures, 30) << replicate;
      EXPECT_NEAR(metrics.availability, 0.5, 0.15) << replicate;
      if (arrivals != ArrivalKind::closed) continue;
      // Eighty a second while it is up.
      EXPECT_NEAR(metrics.throughput.value / (80 * metrics.availability), 1, 0.1) << replicate;
      scenario.load.requests = 100'000;
      const double longer = evaluate(scenario).metrics.throughput.value;
      EXPECT_NEAR(metrics.throughput.value / longer, 1, 0.35) << replicate;
    }
  }
}

// Failures too seldom for any automatic length: nothing that a row says of such a run is called steady or precise.
TEST(ServingVerdict, FewFailuresAreNotSteady) {
  for (const ArrivalKind arrivals : {ArrivalKind::closed, ArrivalKind::poisson}) {
    for (const std::int64_t requests : {0, 1000, 8000}) {
      Scenario scenario = served_at(20);
      scenario.load.arrivals = arrivals;
      scenario.load.clients = 16;
      scenario.load.requests = requests;
      scenario.slo.ttft.p99 = Seconds{1};
      EXPECT_EQ(evaluate(scenario).metrics.steady, 1) << requests;
      scenario.serving.failures = {.mean_time_to_failure = Seconds{3600},
                                   .mean_time_to_repair = Seconds{60}};
      const Metrics metrics = evaluate(scenario).metrics;
      EXPECT_LT(metrics.failures, 30) << requests;
      EXPECT_EQ(metrics.steady, 0) << requests;
      EXPECT_EQ(metrics.precision_met, 0) << requests;
    }
  }
}

// Sessions whose pauses are longer than the run: all of them are open at its end, and the system has next to nothing to do.
TEST(ServingVerdict, NoIdleSystemIsOverloadedHoweverItIsMeasured) {
  for (const std::int64_t requests : {0, 100, 1000, 4000, 20'000}) {
    Scenario scenario = served_at(1);
    scenario.load.turns = 10;
    scenario.load.think_time = Seconds{30};
    scenario.load.measure = MeasureKind::whole;
    scenario.load.requests = requests;
    scenario.serving.kv_blocks = 100'000;
    const Outcome outcome = evaluate(scenario);
    EXPECT_NE(outcome.saturation, Saturation::overloaded) << requests;
    // Sessions are through after some 270 s, and most of those that began after 540 s.
    if (requests == 20'000) {
      EXPECT_EQ(outcome.saturation, Saturation::stable);
    }
  }
}

// A hundred requests at once, or over as long as one of them stays, fill a system that has room for all.
TEST(ServingVerdict, NoPartOfARecordedLoadThatFitsIsAnOverload) {
  for (const double gap : {0.0, 0.002, 0.02}) {
    std::vector<toys::TraceRow> rows;
    for (int i = 0; i < 100; ++i) rows.push_back({1 + gap * i, 8, 200});
    Scenario scenario = toys::served(policy_named("vllm_v1"));
    scenario.serving.max_num_seqs = 1000;
    scenario.serving.kv_blocks = 100'000;
    for (const double warmup : {0.0, 1.05}) {
      for (const double window : {0.0, 0.1, 1.0}) {
        scenario.load.warmup = Seconds{warmup};
        scenario.load.window = Seconds{window};
        const Outcome outcome = evaluate(scenario, toys::trace(rows));
        EXPECT_NE(outcome.saturation, Saturation::overloaded)
            << gap << ", " << warmup << ", " << window;
      }
    }
  }
}

// An answer takes 0.2 s. A window that is shorter shows chance, and one that begins sooner a system that fills up.
TEST(ServingVerdict, AStatedPartOfLessThanAStayIsNotSteady) {
  for (const ArrivalKind arrivals : {ArrivalKind::closed, ArrivalKind::poisson}) {
    for (const double warmup : {0.0, 0.01, 0.1, 10.0}) {
      for (const double window : {0.01, 0.1, 0.19, 30.0}) {
        Scenario scenario = served_at(20);
        scenario.load.arrivals = arrivals;
        scenario.load.clients = 4;
        scenario.load.warmup = Seconds{warmup};
        scenario.load.window = Seconds{window};
        const Outcome outcome = evaluate(scenario);
        if (outcome.status != Status::ok) continue;  // nobody came
        const bool long_enough = (warmup == 0 || warmup > 1) && window > 1;
        EXPECT_EQ(outcome.metrics.steady, long_enough ? 1 : 0) << warmup << ", " << window;
        EXPECT_EQ(outcome.saturation, long_enough ? Saturation::stable : Saturation::undecided)
            << warmup << ", " << window;
      }
    }
  }
}

}  // namespace
}  // namespace engine

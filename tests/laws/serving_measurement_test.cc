// Laws of what is measured: rates do not depend on where one looks, on the drain, or on how a run of
// some length came about; and limits are met only by what was seen.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "engine/serving/serving_sim.h"
#include "tests/support/serving_toys.h"

namespace engine {
namespace {

using toys::served_at;

Outcome evaluated(const Scenario& scenario) {
  Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome;
}

TEST(ServingMeasurement, RatesDoNotDependOnTheWindow) {
  Scenario scenario = served_at(20);
  scenario.load.requests = 4000;
  for (const double warmup : {0, 30}) {
    for (const double window : {0, 100, 30, 10}) {
      scenario.load.warmup = Seconds{warmup};
      scenario.load.window = Seconds{window};
      const Metrics metrics = evaluated(scenario).metrics;
      // As many as arrive: chance brings three deviations of a Poisson count at most.
      const double seen = metrics.measured_until.value - metrics.measured_from.value;
      const double chance = 3 / std::sqrt(20 * seen);
      EXPECT_NEAR(metrics.throughput.value / 20, 1, chance) << warmup << ", " << window;
      EXPECT_NEAR(metrics.throughput.value / metrics.offered.value, 1, 12 / (20 * seen));
      EXPECT_NEAR(metrics.output.value / metrics.throughput.value, 20, 0.6);
      if (window > 0) {
        EXPECT_NEAR(seen, window, 1e-9);
      }
      if (warmup > 0) {
        EXPECT_EQ(metrics.measured_from.value, warmup);
      }
    }
  }
}

TEST(ServingMeasurement, TheDrainDilutesNothing) {
  // Few requests on a system where each stays long: most of a whole run is filling up and draining.
  Scenario scenario = served_at(20);
  scenario.serving.max_num_seqs = 1000;
  scenario.serving.kv_blocks = 100'000;
  scenario.load.lengths.output = 200;  // 2 s
  scenario.load.arrivals = ArrivalKind::deterministic;
  scenario.load.requests = 240;  // 12 s
  const Metrics steady = evaluated(scenario).metrics;
  EXPECT_NEAR(steady.throughput.value, 20, 0.4);
  EXPECT_NEAR(steady.output.value, 4000, 80);
  EXPECT_EQ(steady.steady, 1);
  scenario.load.measure = MeasureKind::whole;
  const Metrics whole = evaluated(scenario).metrics;
  EXPECT_NEAR(whole.throughput.value, 240 / 14.0, 0.2);
  EXPECT_EQ(whole.steady, 0);
  EXPECT_TRUE(std::isnan(whole.precision_met));
}

TEST(ServingMeasurement, AutomaticRunsArePreciseAndKeepTheirLoad) {
  for (const double rate : {10, 40, 70}) {
    const Outcome outcome = evaluated(served_at(rate));
    const Metrics& metrics = outcome.metrics;
    EXPECT_EQ(metrics.precision_met, 1) << rate;
    EXPECT_EQ(metrics.steady, 1) << rate;
    EXPECT_NE(outcome.saturation, Saturation::overloaded) << rate;
    EXPECT_NEAR(metrics.throughput.value / rate, 1, 0.03) << rate;
    Scenario longer = served_at(rate);
    longer.load.requests = 100'000;
    const Metrics reference = evaluated(longer).metrics;
    EXPECT_NEAR(metrics.ttft.value / reference.ttft.value, 1, 0.1) << rate;
    EXPECT_NEAR(metrics.tpot.value / reference.tpot.value, 1, 0.02) << rate;
  }
}

TEST(ServingMeasurement, ALongerRunIsThatLengthStartedAtOnce) {
  const Scenario scenario = served_at(76);
  const Fabric fabric = fabric_of(scenario.cluster, scenario.device);
  const ModelShard shard = shard_of(scenario.model, scenario.parallel, scenario.quant);
  const StepContext context{scenario.device, fabric, shard, scenario.host};
  const LoadLevel level{.rate = scenario.load.rate.value};
  RunPlan plan = run_plan(scenario.load, level, nullptr);
  const auto run = [&](ServingSim& sim) {
    const PoolSetup pool{.settings = scenario.serving,
                         .context = context,
                         .kv_blocks = scenario.serving.kv_blocks,
                         .longest = scenario.model.max_context};
    sim.run({.pools = {&pool, 1},
             .load = scenario.load,
             .slo = scenario.slo,
             .level = level,
             .plan = plan});
  };
  ServingSim doubled, once;
  run(doubled);
  plan.units = doubled.units();
  plan.lengths = 1;
  run(once);
  EXPECT_GT(plan.units, 1000);
  EXPECT_EQ(once.units(), doubled.units());
  EXPECT_NEAR(once.makespan(), doubled.makespan(), 1e-9 * once.makespan());
  const ServingStats &a = once.stats(), &b = doubled.stats();
  EXPECT_EQ(a.part().from, b.part().from);
  EXPECT_EQ(a.part().until, b.part().until);
  using Sums = std::array<double, sizeof(MeasuredSums) / sizeof(double)>;
  const auto left = std::bit_cast<Sums>(a.measured()), right = std::bit_cast<Sums>(b.measured());
  for (std::size_t i = 0; i < left.size(); ++i) EXPECT_NEAR(left[i], right[i], 1e-9 * left[i]) << i;
  EXPECT_NEAR(a.gap_count(), b.gap_count(), 1e-6);
  EXPECT_NEAR(a.gap_percentile(0.99), b.gap_percentile(0.99), 1e-9);
}

TEST(ServingMeasurement, SaturationFollowsTheLoad) {
  // 80 a second can be served; stated lengths from short to long, and automatic ones.
  for (const std::int64_t requests : {0, 300, 1000, 8000}) {
    for (const double share : {0.1, 0.4, 0.7, 1.3, 2.0, 8.0}) {
      Scenario scenario = served_at(80 * share);
      scenario.load.requests = requests;
      const Saturation saturation = evaluated(scenario).saturation;
      if (share < 0.5) {
        EXPECT_EQ(saturation, Saturation::stable) << requests << " at " << share;
      } else if (share < 1) {
        EXPECT_NE(saturation, Saturation::overloaded) << requests << " at " << share;
      } else {
        EXPECT_NE(saturation, Saturation::stable) << requests << " at " << share;
        EXPECT_NE(saturation, Saturation::backlogged) << requests << " at " << share;
        if (requests == 0 || requests == 8000) {
          EXPECT_EQ(saturation, Saturation::overloaded) << requests << " at " << share;
        }
      }
    }
  }
}

// What fills up just before its last request is not seen to be steady: of a run of any length, near what can be served, a
// part that is called steady is longer than a request stays in it.
TEST(ServingMeasurement, SteadyPartsAreLongerThanARequestStays) {
  for (const std::int64_t requests : {60, 90, 150, 300, 800}) {
    for (double rate = 40; rate < 110; rate *= 1.07) {
      Scenario scenario = served_at(rate);
      scenario.serving.max_num_seqs = 160;  // and 2 s each
      scenario.serving.kv_blocks = 100'000;
      scenario.load.lengths.output = 200;
      scenario.load.requests = requests;
      const Outcome outcome = evaluated(scenario);
      const Metrics& metrics = outcome.metrics;
      if (outcome.saturation == Saturation::undecided) {
        EXPECT_EQ(metrics.steady, 0);
      }
      if (metrics.steady == 0) continue;
      // Moments at which one looks are a fortieth of the run apart.
      EXPECT_GT((metrics.measured_until - metrics.measured_from).value, 0.9 * metrics.e2e.value)
          << requests << " at " << rate;
    }
  }
}

TEST(ServingMeasurement, OverloadShowsWhatTheSystemCanServe) {
  for (const double share : {1.2, 3.0, 20.0}) {
    const Metrics metrics = evaluated(served_at(80 * share)).metrics;
    EXPECT_NEAR(metrics.throughput.value, 80, 4) << share;
    EXPECT_EQ(metrics.steady, 0) << share;
  }
}

// Also where a request stays far longer than a thousand of them take to arrive.
TEST(ServingMeasurement, OverloadIsSeenOfASystemThatIsFull) {
  for (const double share : {1.5, 3.0, 20.0}) {
    Scenario scenario = served_at(80 * share);
    scenario.serving.max_num_seqs = 160;  // and 2 s each
    scenario.serving.kv_blocks = 100'000;
    scenario.load.lengths.output = 200;
    const Outcome outcome = evaluated(scenario);
    EXPECT_EQ(outcome.saturation, Saturation::overloaded) << share;
    EXPECT_NEAR(outcome.metrics.throughput.value, 80, 4) << share;
  }
}

// A stated number of requests that ends before the system is full is measured with its drain; what is offered is the stated rate.
TEST(ServingMeasurement, NoOverloadOfFewRequestsLooksSlowerThanAnother) {
  for (const std::int64_t requests : {200, 1000}) {
    for (const double share : {1.2, 1.5, 2.0, 3.0, 5.0, 20.0}) {
      Scenario scenario = served_at(80 * share);
      scenario.serving.max_num_seqs = 160;  // and 2 s each
      scenario.serving.kv_blocks = 100'000;
      scenario.load.lengths.output = 200;
      scenario.load.requests = requests;
      const Metrics metrics = evaluated(scenario).metrics;
      // At worst two rounds and a half of 2 s for what takes as long as 1.25 of them.
      EXPECT_GT(metrics.throughput.value, requests == 200 ? 35 : 60) << requests << " at " << share;
      EXPECT_LE(metrics.throughput.value, 84) << requests << " at " << share;
      EXPECT_NEAR(metrics.offered.value / (80 * share), 1, 0.25) << requests << " at " << share;
    }
  }
}

// A run that is stopped because it never keeps up leaves most of those that came unanswered: they were offered, too.
TEST(ServingMeasurement, WhatIsOfferedIsTheRateOfTheLoad) {
  for (const double rate : {40.0, 240.0, 2400.0, 24000.0}) {
    Scenario scenario = served_at(rate);
    scenario.serving.max_num_seqs = 16;  // 0.2 s each: 80 a second
    scenario.serving.kv_blocks = 100'000;
    scenario.load.requests = 0;
    EXPECT_NEAR(evaluated(scenario).metrics.offered.value / rate, 1, 0.05) << rate;
    // Evenly spaced ones come at their rate however few they are.
    scenario.load.arrivals = ArrivalKind::deterministic;
    for (const std::int64_t requests : {2, 3, 10}) {
      scenario.load.requests = requests;
      scenario.load.measure = MeasureKind::whole;
      EXPECT_NEAR(evaluated(scenario).metrics.offered.value / rate, 1, 1e-9) << requests;
    }
  }
}

// A part that begins just before the last arrival showed no answer at all, or far too few of those that came.
TEST(ServingMeasurement, HoweverFewRequestsTheirTokensComeAtTheirOwnRate) {
  for (std::int64_t requests = 5; requests <= 80; requests += 5) {
    for (const double share : {0.5, 0.8, 0.9, 1.0, 1.1, 1.2, 1.5, 2.0}) {
      Scenario scenario = served_at(80 * share);
      scenario.serving.max_num_seqs = 16;  // 0.2 s each
      scenario.serving.kv_blocks = 100'000;
      scenario.load.requests = requests;
      const Metrics metrics = evaluated(scenario).metrics;
      const double of_a_request = metrics.output.value / metrics.throughput.value;
      EXPECT_GT(of_a_request, 0.5 * 20) << requests << " at " << share;
      EXPECT_LT(of_a_request, 2.0 * 20) << requests << " at " << share;
    }
  }
}

// One in a hundred cannot be served: that breaks a limit on 99.5% of the requests, and none on 95%.
TEST(ServingMeasurement, RefusedRequestsAreLateForTheirShare) {
  Scenario scenario = served_at(20);
  std::vector<toys::TraceRow> arrivals;
  arrivals.reserve(1000);
  for (int i = 0; i < 1000; ++i) arrivals.push_back({0.05 * i, i % 100 == 50 ? 1'000'000 : 8, 20});
  const Resources resources = toys::trace(arrivals);
  scenario.load.arrivals = ArrivalKind::trace;
  scenario.load.trace = "toy";
  scenario.load.rate = {};
  scenario.load.requests = 0;
  scenario.slo.ttft.p95 = Seconds{1};
  Metrics metrics = evaluate(scenario, resources).metrics;
  EXPECT_EQ(metrics.requests_refused, 10);
  EXPECT_EQ(metrics.slo_met, 1);
  EXPECT_NEAR(metrics.slo_attainment, 0.99, 1e-12);
  scenario.slo.ttft.p99 = Seconds{1};
  EXPECT_EQ(evaluate(scenario, resources).metrics.slo_met, 1);
  scenario.slo.ttft.p95 = Seconds{1e-6};
  EXPECT_EQ(evaluate(scenario, resources).metrics.slo_met, 0);
}

TEST(ServingMeasurement, EverythingAtOnceIsMeasuredAsAWhole) {
  // Sixteen at a time, 0.2 s each: 400 requests that come together take 5 s.
  Scenario scenario = served_at(1e6);
  scenario.load.requests = 400;
  const Metrics metrics = evaluated(scenario).metrics;
  EXPECT_NEAR(metrics.throughput.value, 80, 1);
  EXPECT_EQ(metrics.requests_measured, 400);
  EXPECT_EQ(metrics.steady, 0);
}

TEST(ServingMeasurement, AnswersOfOneTokenAreNeverLateBetweenTokens) {
  Scenario scenario = served_at(20);
  scenario.load.lengths.output = 1;
  scenario.load.requests = 500;
  scenario.slo.tpot.p95 = Seconds{1};
  scenario.slo.itl.p99 = Seconds{1};
  const Metrics metrics = evaluated(scenario).metrics;
  EXPECT_EQ(metrics.slo_met, 1);
  EXPECT_EQ(metrics.slo_attainment, 1);
  // Other limits hold as ever.
  scenario.slo.ttft.p95 = Seconds{1e-6};
  EXPECT_EQ(evaluated(scenario).metrics.slo_met, 0);
}

TEST(ServingMeasurement, CapacityIsWhatCanBeKeptUp) {
  // A limit that only a growing queue can miss: the answer is what the system serves, however many
  // requests are stated, if they can tell 91% of it from 110%.
  for (const std::int64_t requests : {0, 20'000}) {
    Scenario scenario = served_at(20);
    scenario.load.requests = requests;
    scenario.capacity.slo.ttft.p95 = Seconds{5};
    const Metrics metrics = evaluated(scenario).metrics;
    EXPECT_NEAR(metrics.capacity.value, 80, 4) << requests;
    EXPECT_EQ(metrics.slo_met, 1);
    EXPECT_EQ(metrics.capacity_decided, 1) << requests;
  }
}

// A few hundred requests do not show whether a queue keeps growing: whatever rate they lead to, the row says so.
TEST(ServingMeasurement, CapacityOfRunsTooShortToTellIsNotDecided) {
  Scenario scenario = served_at(20);
  scenario.serving.max_num_seqs = 160;
  scenario.serving.kv_blocks = 100'000;
  scenario.load.lengths.output = 200;
  scenario.load.requests = 300;
  scenario.capacity.slo.ttft.p95 = Seconds{5};
  const Outcome outcome = evaluated(scenario);
  EXPECT_EQ(outcome.metrics.capacity_decided, 0);
  EXPECT_EQ(outcome.metrics.steady, 0);
}

// The estimate counts the room that a policy sets aside: half of it can be served, whatever that is.
TEST(ServingMeasurement, HalfOfWhatIsEstimatedIsKeptUp) {
  for (const char* name : {"vllm_v1", "sarathi", "sglang", "orca", "no_evict"}) {
    Scenario scenario = served_at(1);
    scenario.serving.policy = *from_name<PolicyName>(name);
    scenario.serving.max_output = 200;
    scenario.load.throughput_fraction = 0.5;
    const Outcome outcome = evaluated(scenario);
    EXPECT_EQ(outcome.metrics.steady, 1) << name;
    EXPECT_NEAR(outcome.metrics.throughput / outcome.metrics.offered, 1, 0.05) << name;
  }
}

TEST(ServingMeasurement, AClosedLoopIsMeasuredInWholeRounds) {
  // Sixteen clients in step: rounds of 0.2 s, whatever the number of requests.
  for (const std::int64_t requests : {0, 160, 167, 1000}) {
    Scenario scenario = served_at(1);
    scenario.load.arrivals = ArrivalKind::closed;
    scenario.load.clients = 16;
    scenario.load.requests = requests;
    const Outcome outcome = evaluated(scenario);
    EXPECT_NEAR(outcome.metrics.throughput.value, 80, 1e-6) << requests;
    EXPECT_NEAR(outcome.metrics.output.value, 1600, 1e-5) << requests;
    EXPECT_EQ(outcome.metrics.precision_met, 1) << requests;
    EXPECT_EQ(outcome.saturation, Saturation::stable) << requests;
  }
}

TEST(ServingMeasurement, ClientsWhoWaitForSeatsObeyLittlesLaw) {
  // Equal requests on few seats finish in bursts of as many as there are seats, prompts of a burst in several steps.
  for (const std::int64_t clients : {32, 33, 34, 35, 36, 38, 40, 48}) {
    Scenario scenario = served_at(1);
    scenario.load.arrivals = ArrivalKind::closed;
    scenario.load.clients = clients;
    scenario.load.lengths.output = 200;
    scenario.serving.max_num_seqs = 32;
    scenario.serving.max_num_batched_tokens = 100;
    scenario.serving.kv_blocks = 10'000;
    const Metrics metrics = evaluated(scenario).metrics;
    EXPECT_NEAR(metrics.throughput.value * metrics.e2e.value / double(clients), 1, 0.02) << clients;
    EXPECT_EQ(metrics.precision_met, 1) << clients;
  }
}

TEST(ServingMeasurement, SessionsAreMeasuredWhileOthersBegin) {
  Scenario scenario = served_at(5);
  scenario.load.turns = 4;
  scenario.load.think_time = Seconds{1};
  const Outcome outcome = evaluated(scenario);
  EXPECT_NEAR(outcome.metrics.throughput.value, 20, 1);
  EXPECT_NEAR(outcome.metrics.throughput.value / outcome.metrics.offered.value, 1, 0.01);
  EXPECT_EQ(outcome.saturation, Saturation::stable);
}

TEST(ServingMeasurement, MeasuredRowsAreThoseThatArriveInThePart) {
  Scenario scenario = served_at(40);
  scenario.output.requests = true;
  const Outcome outcome = evaluated(scenario);
  const Metrics& metrics = outcome.metrics;
  double measured = 0, answers = 0, ttft = 0;
  for (const RequestRow& row : outcome.requests) {
    if (row.finish > metrics.measured_from && row.finish <= metrics.measured_until) answers += 1;
    EXPECT_EQ(row.measured, row.arrival.value >= metrics.measured_from.value - 1e-9 &&
                                row.arrival < metrics.measured_until);
    if (!row.measured) continue;
    measured += 1;
    ttft += (row.first_token - row.arrival).value;
  }
  EXPECT_EQ(measured, metrics.requests_measured);
  EXPECT_NEAR(ttft / measured, metrics.ttft.value, 1e-9);
  EXPECT_NEAR(answers / (metrics.measured_until - metrics.measured_from).value,
              metrics.throughput.value, 1e-9);
}

}  // namespace
}  // namespace engine

// How much of its load a run has seen: a run that is over too soon, a curve that is cut, requests that never fit. Whoever reads the row
// alone sees it.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/support/serving_toys.h"

namespace engine {
namespace {

using toys::served_at;

Outcome evaluated(const Scenario& scenario, const Resources& resources = {}) {
  Outcome outcome = evaluate(scenario, resources);
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome;
}

// Sessions of ten calls with half a minute between two of them: 20 requests a second once the first sessions are through.
Scenario sessions() {
  Scenario scenario = served_at(2);
  scenario.load.turns = 10;
  scenario.load.think_time = Seconds{30};
  scenario.serving.kv_blocks = 100'000;
  return scenario;
}

// However a run was made long or short, a row that calls itself steady met the load that was stated.
TEST(LoadSeen, ASteadyRunOfSessionsHasMetItsWholeLoad) {
  int steady = 0;
  for (const std::int64_t requests : {0, 300, 1000, 4000, 16'000, 40'000}) {
    for (const double warmup : {0.0, 10.0, 100.0, 600.0}) {
      Scenario scenario = sessions();
      scenario.load.requests = requests;
      scenario.load.warmup = Seconds{warmup};
      const Outcome outcome = evaluate(scenario);
      if (outcome.status != Status::ok) continue;  // over before its warm-up
      if (outcome.metrics.steady == 1) {
        EXPECT_NEAR(outcome.metrics.load_seen, 1, 0.1) << requests << ", " << warmup;
        ++steady;
      } else {
        // It has room to spare, so it is not overloaded either.
        EXPECT_EQ(outcome.saturation, Saturation::undecided) << requests << ", " << warmup;
      }
    }
  }
  EXPECT_GE(steady, 4);
}

TEST(LoadSeen, ARunThatEndsBeforeItsSessionsSaysHowMuchOfTheLoadCame) {
  Scenario scenario = sessions();
  double before = 0;
  for (const std::int64_t requests : {300, 1000, 4000}) {
    scenario.load.requests = requests;
    const Outcome outcome = evaluated(scenario);
    EXPECT_GT(outcome.metrics.load_seen, before) << requests;
    EXPECT_LT(outcome.metrics.load_seen, 0.7) << requests;
    EXPECT_EQ(outcome.metrics.steady, 0) << requests;
    EXPECT_EQ(outcome.saturation, Saturation::undecided) << requests;
    before = outcome.metrics.load_seen;
  }
  // Where the length is left to the run, it is long enough.
  scenario.load.requests = 0;
  const Outcome outcome = evaluated(scenario);
  EXPECT_NEAR(outcome.metrics.load_seen, 1, 0.05);
  EXPECT_EQ(outcome.metrics.steady, 1);
}

// Prompts that share their beginning with ever fewer others: the caches of a short run have hardly any of them. What a steady row says is
// what four times as many requests say.
TEST(LoadSeen, ASteadyRunHasWarmCaches) {
  for (const std::int64_t groups : {1, 20, 400, 4000}) {
    for (const std::int64_t requests : {0, 500, 2000, 8000, 32'000}) {
      Scenario scenario = served_at(20);
      scenario.serving.prefix_caching = true;
      scenario.serving.kv_blocks = 500'000;
      scenario.load.lengths.prompt = 80;
      scenario.load.shared_prefix = 64;
      scenario.load.prefix_groups = groups;
      scenario.load.requests = requests;
      const Metrics metrics = evaluated(scenario).metrics;
      if (metrics.steady != 1) continue;
      scenario.load.requests = 4 * std::int64_t(metrics.requests_finished);
      scenario.load.warmup = Seconds{metrics.measured_from.value};
      const Metrics longer = evaluated(scenario).metrics;
      EXPECT_NEAR(metrics.prefix_hit_rate, longer.prefix_hit_rate, 0.13)
          << groups << " groups, " << requests << " requests";
    }
  }
  // With 4,000 of them, a thousand requests find almost nothing, and later ones more and more.
  Scenario cold = served_at(20);
  cold.serving.prefix_caching = true;
  cold.serving.kv_blocks = 500'000;
  cold.load.lengths.prompt = 80;
  cold.load.shared_prefix = 64;
  cold.load.prefix_groups = 4000;
  cold.load.requests = 4000;
  const Metrics metrics = evaluated(cold).metrics;
  EXPECT_GT(metrics.cache_drift, 0.05);
  EXPECT_EQ(metrics.steady, 0);
}

Scenario of_curve(const std::string& curve) {
  Scenario scenario = served_at(1);
  scenario.load.arrivals = ArrivalKind::curve;
  scenario.load.curve = curve;
  return scenario;
}

// A curve with an end is followed to it, and not beyond, whatever its rates are.
TEST(LoadSeen, ACurveThatEndsIsPlayedToItsEnd) {
  for (const char* curve : {"0:4, 600:30, 1200:end", "0:4, 600:0, 1200:end", "0:20, 100:end",
                            "0:2, 50:40, 100:1, 2000:end"}) {
    Scenario scenario = of_curve(curve);
    scenario.output.requests = true;
    const Outcome outcome = evaluated(scenario);
    const std::string text = curve;
    const double end = std::stod(text.substr(text.rfind(',') + 1));
    EXPECT_NEAR(outcome.metrics.load_seen, 1, 0.1) << curve;
    EXPECT_TRUE(std::isnan(outcome.metrics.curve_tail.value)) << curve;
    for (const RequestRow& row : outcome.requests) ASSERT_LT(row.arrival.value, end) << curve;
    EXPECT_GE(outcome.metrics.makespan.value, end) << curve;
    EXPECT_LT(outcome.metrics.makespan.value, end + 5) << curve;
    EXPECT_EQ(outcome.metrics.measured_from.value, 0) << curve;
    EXPECT_NEAR(outcome.metrics.measured_until.value, outcome.metrics.makespan.value, 1e-6);
  }
}

// An idle hour at the end of a curve is paid for, draws power and is followed by the fleet, as it would be in between.
TEST(LoadSeen, TheQuietEndOfACurveCounts) {
  for (const ScalingPolicy policy :
       {ScalingPolicy::fixed, ScalingPolicy::reactive, ScalingPolicy::scheduled}) {
    const auto day_of = [policy](double end) {
      Scenario scenario = of_curve("0:20, 60:0, " + std::to_string(int(end)) + ":end");
      scenario.device.rent = DollarsPerSecond{0.001};
      scenario.device.idle_power = scenario.device.busy_power = Watts{100};
      scenario.device.tensor_power = scenario.device.power_limit = Watts{1000};
      scenario.serving.replicas = 2;
      scenario.serving.scaling = {.policy = policy,
                                  .min_replicas = 1,
                                  .target = 4,
                                  .interval = Seconds{1},
                                  .cold_start = Seconds{0},
                                  .cooldown = Seconds{30}};
      if (policy == ScalingPolicy::scheduled) scenario.serving.scaling.schedule = "0:2, 400:1";
      return evaluated(scenario).metrics;
    };
    const Metrics day = day_of(600), longer = day_of(3600);
    // One replica is on at the end, or both of a fleet of fixed size.
    const double on = policy == ScalingPolicy::fixed ? 2 : 1;
    EXPECT_NEAR((longer.device_hours - day.device_hours) * 3600, on * 3000, 1e-6);
    EXPECT_NEAR((longer.makespan - day.makespan).value, 3000, 1e-9);
    EXPECT_NEAR((longer.energy - day.energy).value, on * 3000 * 100, 1e-3);
    // What is finished comes to the same in both, at a sixth of the rate.
    EXPECT_EQ(longer.requests_finished, day.requests_finished);
    EXPECT_NEAR(longer.throughput.value * 6, day.throughput.value, 1e-9);
    EXPECT_NEAR(longer.offered.value, longer.throughput.value, 1e-9);
    for (const Metrics& metrics : {day, longer}) {
      // Rent x device hours over tokens, whatever the fleet does.
      const double tokens = metrics.total.value * metrics.makespan.value / 1e6;
      const double dollars = metrics.price_usd_per_mtok * tokens;
      EXPECT_NEAR(dollars / (0.001 * 3600 * metrics.device_hours), 1, 1e-9);
    }
  }
}

// Replicas fail and are repaired while nobody comes, too.
TEST(LoadSeen, ReplicasFailInTheQuietEndOfACurve) {
  Scenario scenario = of_curve("0:20, 60:0, 20000:end");
  scenario.serving.failures = {
      .mean_time_to_failure = Seconds{100}, .mean_time_to_repair = Seconds{100}, .attempts = 1000};
  const Metrics metrics = evaluated(scenario).metrics;
  EXPECT_NEAR(metrics.failures, 100, 30);
  EXPECT_NEAR(metrics.availability, 0.5, 0.15);
}

// Sessions that began before the end go on to their last turn.
TEST(LoadSeen, SessionsThatBeganBeforeTheEndGoOn) {
  Scenario scenario = of_curve("0:2, 300:end");
  scenario.load.turns = 4;
  scenario.load.think_time = Seconds{10};
  const Outcome outcome = evaluated(scenario);
  EXPECT_NEAR(outcome.metrics.load_seen, 1, 0.15);
  EXPECT_EQ(std::fmod(outcome.metrics.requests_finished, 4), 0);
  EXPECT_GT(outcome.metrics.makespan.value, 310);
}

TEST(LoadSeen, ACurveThatIsCutSaysHowMuchOfItCame) {
  Scenario scenario = of_curve("0:2, 600:50, 1200:2");
  scenario.load.requests = 600 * (2 + 50 + 2) / 6;
  EXPECT_NEAR(evaluated(scenario).metrics.load_seen, 1.0 / 6, 1e-3);
  EXPECT_EQ(evaluated(scenario).metrics.curve_tail.value, 0);
  // Left to itself it lasts until its last number has held as long as the one before it: nobody said for how long.
  scenario.load.requests = 0;
  EXPECT_NEAR(evaluated(scenario).metrics.load_seen, 1, 1e-3);
  EXPECT_NEAR(evaluated(scenario).metrics.curve_tail.value, 600, 60);
}

TEST(LoadSeen, ANumberOfRequestsDoesNotCutACurveThatEnds) {
  Scenario scenario = of_curve("0:2, 600:50, 1200:2, 1800:end");
  scenario.load.requests = 400;
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::infeasible);
  EXPECT_EQ(outcome.reason,
            "load.requests: 400 is stated, and load.curve ends by itself, after 1800 s and about "
            "32400 requests: state load.requests: auto, or leave the end out of the curve");
  const Outcome empty = evaluate(of_curve("0:1e-9, 1:end"));
  EXPECT_EQ(empty.status, Status::infeasible);
  EXPECT_EQ(empty.reason, "nothing was measured: the load ends before its first request comes");
}

TEST(LoadSeen, ATraceOrALoopThatIsCutSaysSo) {
  const Resources four = toys::trace({{0, 4, 4}, {1, 4, 4}, {2, 4, 4}, {3, 4, 4}});
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  EXPECT_EQ(evaluated(scenario, four).metrics.load_seen, 1);
  scenario.load.requests = 1;
  EXPECT_EQ(evaluated(scenario, four).metrics.load_seen, 0.25);
  Scenario loop = served_at(1);
  loop.load.arrivals = ArrivalKind::closed;
  loop.load.clients = 4;
  EXPECT_EQ(evaluated(loop).metrics.load_seen, 1);
  loop.load.requests = 3;
  EXPECT_EQ(evaluated(loop).metrics.load_seen, 0.75);
}

// A mean that is stated is not the mean that comes where long requests are cut.
TEST(LoadSeen, WhatMaximaCutOffIsTold) {
  Scenario scenario = served_at(20);
  EXPECT_TRUE(std::isnan(evaluated(scenario).metrics.cut_share));
  scenario.load.lengths = {.distribution = LengthKind::lognormal,
                           .prompt = 100,
                           .output = 20,
                           .prompt_cv = 2,
                           .prompt_max = 1'000'000};
  EXPECT_EQ(evaluated(scenario).metrics.cut_share, 0);
  scenario.load.lengths.prompt_max = 100;
  const Metrics cut = evaluated(scenario).metrics;
  EXPECT_GT(cut.cut_share, 0.3);
  // What is left of 120 tokens is what comes.
  const double comes = cut.total.value / cut.throughput.value;
  EXPECT_NEAR(comes / (120 * (1 - cut.cut_share)), 1, 0.1);
}

// Requests that are too long are a share of all that came.
TEST(LoadSeen, TheShareThatNeverFitsIsTold) {
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.serving.kv_blocks = 10;  // 40 tokens
  const Outcome outcome =
      evaluated(scenario, toys::trace({{0, 4, 4}, {1, 400, 4}, {2, 4, 4}, {3, 4, 400}, {4, 4, 4}}));
  EXPECT_EQ(outcome.metrics.requests_refused, 2);
  EXPECT_NEAR(outcome.metrics.refused_share, 0.4, 1e-12);
  EXPECT_NEAR(outcome.metrics.given_up_share, 0.4, 1e-12);
  EXPECT_EQ(evaluated(served_at(20)).metrics.refused_share, 0);
  EXPECT_EQ(evaluated(served_at(20)).metrics.given_up_share, 0);
}

// Whoever is not answered is given up, whether he was refused, shed or failed with his replica.
TEST(LoadSeen, TheShareThatIsGivenUpIsTold) {
  Scenario scenario = served_at(160);  // twice what is served
  scenario.load.requests = 4000;
  scenario.serving.admission.max_queue = 4;
  Metrics metrics = evaluated(scenario).metrics;
  EXPECT_NEAR(metrics.given_up_share, 0.5, 0.05);
  EXPECT_NEAR(metrics.given_up_share, metrics.requests_shed / 4000, 1e-12);
  EXPECT_EQ(metrics.refused_share, 0);
  scenario = served_at(20);
  scenario.load.requests = 4000;
  scenario.serving.failures = {
      .mean_time_to_failure = Seconds{2}, .mean_time_to_repair = Seconds{1}, .attempts = 1};
  metrics = evaluated(scenario).metrics;
  EXPECT_GT(metrics.given_up_share, 0.02);
  EXPECT_NEAR(metrics.given_up_share, metrics.requests_failed / 4000, 1e-12);
  EXPECT_NEAR(metrics.requests_finished, 4000 * (1 - metrics.given_up_share), 1e-6);
}

}  // namespace
}  // namespace engine

// Intervals of served figures, on a toy whose steps take 10 ms because its host does.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/serving_toys.h"

namespace engine {
namespace {

Scenario served_with_intervals(double low, double high) {
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.load.arrivals = ArrivalKind::poisson;
  scenario.load.trace.clear();
  scenario.load.rate = RequestsPerSecond{30};
  scenario.load.requests = 300;
  scenario.load.lengths.prompt = 20;
  scenario.load.lengths.output = 30;
  scenario.host.low = low;
  scenario.host.high = high;
  scenario.output.intervals = true;
  return scenario;
}

void expect_inside(double low, double value, double high, const char* what) {
  EXPECT_LT(low, value) << what;
  EXPECT_LT(value, high) << what;
}

TEST(ServedIntervals, HoldTheFigures) {
  const Metrics metrics = evaluate(served_with_intervals(0.8, 1.5)).metrics;
  expect_inside(metrics.ttft_low.value, metrics.ttft.value, metrics.ttft_high.value, "ttft");
  expect_inside(metrics.tpot_low.value, metrics.tpot.value, metrics.tpot_high.value, "tpot");
  expect_inside(metrics.e2e_low.value, metrics.e2e.value, metrics.e2e_high.value, "e2e");
  EXPECT_LE(metrics.output_low, metrics.output);
  EXPECT_LE(metrics.output, metrics.output_high);
  EXPECT_LE(metrics.throughput_low, metrics.throughput);
  EXPECT_LE(metrics.throughput, metrics.throughput_high);
  EXPECT_TRUE(std::isnan(metrics.slo_probability));
}

// Steps are off by one factor, so a decode of one sequence alone is off by that factor.
TEST(ServedIntervals, OfARequestAloneAreThoseOfItsSteps) {
  Scenario scenario = served_with_intervals(0.8, 1.5);
  scenario.load.arrivals = ArrivalKind::trace;
  scenario.load.trace = "toy";
  const Outcome outcome = evaluate(scenario, toys::trace({{0, 8, 4}}));
  double time = 0, below = 0, above = 0;  // of decodes: each family in squares
  for (const KernelRow& row : outcome.kernels) {
    if (row.phase != Phase::decode) continue;
    time += row.work.time.value;
    if (row.family != Family::host) continue;
    below = (row.work.time - row.work.low).value;
    above = (row.work.high - row.work.time).value;
  }
  EXPECT_NEAR(time, 0.03, 1e-12);
  const double low = outcome.metrics.tpot_low.value / outcome.metrics.tpot.value;
  const double high = outcome.metrics.tpot_high.value / outcome.metrics.tpot.value;
  EXPECT_LE(low, 1 - below / time + 1e-9);
  EXPECT_GE(high, 1 + above / time - 1e-9);
}

TEST(ServedIntervals, WiderOnesOfStepsMakeWiderOnes) {
  const Metrics narrow = evaluate(served_with_intervals(0.9, 1.2)).metrics;
  const Metrics wide = evaluate(served_with_intervals(0.6, 3)).metrics;
  EXPECT_LT(wide.ttft_low, narrow.ttft_low);
  EXPECT_GT(wide.ttft_high, narrow.ttft_high);
  EXPECT_LT(wide.e2e_low, narrow.e2e_low);
  EXPECT_GT(wide.e2e_high, narrow.e2e_high);
  // The load is far below capacity: rates hardly depend on the steps.
  EXPECT_LE(wide.output_low.value, narrow.output_low.value * 1.01);
  EXPECT_EQ(wide.ttft, narrow.ttft);
}

// However well steps are known, first tokens wait for more than these; most so where the model routes tokens to experts, or
// where another deployment reads prompts.
TEST(ServedIntervals, FirstTokensAreLessCertainThanSteps) {
  const auto width = [](const Scenario& scenario) {
    const Outcome outcome = evaluate(scenario);
    EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
    const Metrics& metrics = outcome.metrics;
    EXPECT_GE(metrics.ttft / metrics.ttft_low, 1.25 - 1e-9);
    EXPECT_GE(metrics.ttft_high / metrics.ttft, 1.25 - 1e-9);
    EXPECT_GE(metrics.e2e_high - metrics.e2e, metrics.ttft_high - metrics.ttft - Seconds{1e-9});
    return metrics.ttft_high / metrics.ttft;
  };
  Scenario scenario = served_with_intervals(1, 1);
  const double dense = width(scenario);
  Scenario experts = scenario;
  experts.model = toys::mixture();
  EXPECT_GT(width(experts), 1.5 * dense);
  scenario.prefill.present = true;
  fill_roles(scenario);
  EXPECT_GT(width(scenario), 1.5 * dense);
}

TEST(ServedIntervals, AnSloIsMetWithTheProbabilityOfItsLimit) {
  Scenario scenario = served_with_intervals(0.8, 1.5);
  const Metrics as_predicted = evaluate(scenario).metrics;
  const auto probability = [&](double limit) {
    scenario.slo.tpot.p50 = Seconds{limit};
    return evaluate(scenario).metrics.slo_probability;
  };
  const double median = as_predicted.tpot_p50.value;
  EXPECT_NEAR(probability(median * (1 + 1e-9)), 0.5, 0.03);
  EXPECT_LT(probability(median * 0.01), 1e-3);
  EXPECT_GT(probability(median * 100), 1 - 1e-3);
  double before = 0;
  for (const double share : {0.9, 1.1, 1.5}) {
    const double here = probability(median * share);
    EXPECT_GT(here, before + 0.02) << share;
    before = here;
  }
}

// Nine in ten lie in an interval, so one in twenty lies above it: what a probability says of a limit there.
TEST(ServedIntervals, AnSloAtTheirEndsIsMetAsOftenAsTheySay) {
  for (const double high : {1.0, 1.5}) {
    Scenario scenario = served_with_intervals(0.8, high);
    const Metrics figures = evaluate(scenario).metrics;
    const auto probability = [&](Seconds first, Seconds answer = Seconds{0}) {
      scenario.slo.ttft.mean = first;
      scenario.slo.e2e.mean = answer;
      return evaluate(scenario).metrics.slo_probability;
    };
    EXPECT_NEAR(probability(figures.ttft_low), 0.05, 0.02) << high;
    // More may be added than taken away, so somewhat less than half lies below the prediction.
    EXPECT_NEAR(probability(figures.ttft), 0.45, 0.06) << high;
    EXPECT_NEAR(probability(figures.ttft_high), 0.95, 0.02) << high;
    EXPECT_GT(probability(figures.ttft * 1000), 0.999);
    EXPECT_LT(probability(figures.ttft * 0.001), 0.001);
    EXPECT_NEAR(probability(Seconds{0}, figures.e2e), 0.5, 0.05) << high;
    EXPECT_GT(probability(Seconds{0}, figures.e2e_high), 0.93) << high;
    // Two promises are kept no more often than one of them.
    scenario.slo.tpot.mean = figures.tpot;
    EXPECT_LE(probability(figures.ttft), 0.51) << high;
    EXPECT_GE(probability(figures.ttft), 0.2) << high;
  }
}

TEST(ServedIntervals, NobodyAskedNobodyGets) {
  Scenario scenario = served_with_intervals(0.8, 1.5);
  scenario.output.intervals = false;
  const Metrics metrics = evaluate(scenario).metrics;
  EXPECT_TRUE(std::isnan(metrics.ttft_low.value));
  EXPECT_TRUE(std::isnan(metrics.throughput_high.value));
}

}  // namespace
}  // namespace engine

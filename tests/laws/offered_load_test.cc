// What a load offers: a share of what could be served is one whatever the layout, and rates and verdicts of a stated part are those of
// the load.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/serving_toys.h"

namespace engine {
namespace {

using toys::served_at;

Metrics figures_of(const Scenario& scenario) {
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome.metrics;
}

// Batches in flight share the seats and the blocks of a pipeline: more stages have no more of them.
TEST(OfferedLoad, TheWholeOfWhatIsEstimatedIsAboutWhatAPipelineServes) {
  for (const std::int64_t stages : {1, 2, 4}) {
    for (const std::int64_t blocks : {100'000, 160}) {
      Scenario scenario = served_at(10'000);
      scenario.host = {};
      scenario.parallel.pp = stages;
      scenario.serving.max_num_seqs = blocks > 1000 ? 16 : 1000;
      scenario.serving.kv_blocks = blocks;
      scenario.load.lengths.output = 60;
      scenario.load.requests = 4000;
      const double served = figures_of(scenario).throughput.value;
      scenario.load.throughput_fraction = 1;
      const double estimated = figures_of(scenario).offered.value;
      EXPECT_NEAR(estimated / served, 1, 0.3) << stages << " stages, " << blocks << " blocks";
    }
  }
}

// Evenly spaced requests come at their rate, though answers go on coming long after the last of them.
TEST(OfferedLoad, NothingIsOfferedAfterTheLastArrival) {
  Scenario scenario = served_at(160);  // twice what is served
  scenario.load.arrivals = ArrivalKind::deterministic;
  scenario.load.requests = 1600;
  scenario.load.measure = MeasureKind::whole;
  for (const double warmup : {0.0, 1.0, 5.0}) {
    for (const double window : {0.0, 3.0, 1000.0}) {
      scenario.load.warmup = Seconds{warmup};
      scenario.load.window = Seconds{window};
      EXPECT_NEAR(figures_of(scenario).offered.value, 160, 1e-6) << warmup << ", " << window;
    }
  }
}

// A window is judged by what happens in it, however long the warm-up before it takes.
TEST(OfferedLoad, AWindowAfterALongWarmUpIsOfASteadyLoad) {
  Scenario scenario = served_at(20);
  for (const double warmup : {10.0, 100.0, 900.0}) {
    scenario.load.warmup = Seconds{warmup};
    scenario.load.window = Seconds{30};
    const Outcome outcome = evaluate(scenario);
    EXPECT_EQ(outcome.saturation, Saturation::stable) << warmup;
    EXPECT_EQ(outcome.metrics.steady, 1) << warmup;
  }
}

// However coarse the grid of a search is: runs on both sides of the answer tell.
TEST(OfferedLoad, ACoarseSearchIsDecided) {
  for (const double tolerance : {0.01, 0.1, 0.2, 0.5}) {
    Scenario scenario = served_at(20);
    scenario.capacity.tolerance = tolerance;
    scenario.capacity.slo.ttft.p95 = Seconds{5};
    const Metrics metrics = figures_of(scenario);
    EXPECT_EQ(metrics.capacity_decided, 1) << tolerance;
    EXPECT_LT(metrics.capacity.value, 84) << tolerance;
    EXPECT_GT(metrics.capacity.value * (1 + tolerance), 76) << tolerance;
  }
}

// A limit that is missed by little is missed in the figures of the reason, too.
TEST(OfferedLoad, TheReasonShowsByHowMuchALimitIsMissed) {
  Scenario scenario = served_at(20);
  scenario.host.step_overhead = Seconds{10.02e-3};
  scenario.load.requests = 300;
  scenario.load.arrivals = ArrivalKind::deterministic;
  scenario.load.lengths.output = 21;
  scenario.capacity.slo.e2e.mean = Seconds{0.2103};
  const std::string close = evaluate(scenario).reason;
  EXPECT_TRUE(close.ends_with("req/s e2e_mean is 0.2104 s, and 0.2103 s are allowed")) << close;
  scenario.capacity.slo.e2e.mean = Seconds{0.1};
  const std::string far = evaluate(scenario).reason;
  EXPECT_TRUE(far.ends_with("req/s e2e_mean is 0.21 s, and 0.1 s are allowed")) << far;
}

// Shed requests decide a limit like late ones: a capacity does not rest on a few of them.
TEST(OfferedLoad, FiguresAreKnownWithThoseThatAreShed) {
  Scenario scenario = served_at(20);
  scenario.serving.max_num_seqs = 1;  // 0.2 s each
  scenario.serving.admission.max_queue = 1;
  scenario.capacity.slo.ttft.p99 = Seconds{1};  // nobody who is let in waits for half as long
  for (std::int64_t replicate = 0; replicate < 4; ++replicate) {
    scenario.replicate = replicate;
    const Outcome outcome = evaluate(scenario);
    ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
    EXPECT_EQ(outcome.metrics.precision_met, 0) << replicate;
    EXPECT_GT(outcome.metrics.requests_measured, 30'000) << replicate;
  }
}

}  // namespace
}  // namespace engine

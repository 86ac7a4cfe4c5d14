// Limits of `slo` beside those of a capacity search: requests are held to the former, the highest rate meets both.
#include <gtest/gtest.h>

#include "tests/support/serving_toys.h"

namespace engine {
namespace {

using toys::served_at;

Metrics served(const Scenario& scenario) {
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome.metrics;
}

TEST(TwoSlos, TheTighterOfEachLimitIsKept) {
  Slo one, other;
  one.ttft.p95 = Seconds{1};
  one.tpot.mean = Seconds{2};
  other.ttft.p95 = Seconds{3};
  other.e2e.p99 = Seconds{4};
  for (const Slo& both : {tighter_of(one, other), tighter_of(other, one)}) {
    EXPECT_EQ(both.ttft.p95.value, 1);
    EXPECT_EQ(both.tpot.mean.value, 2);
    EXPECT_EQ(both.e2e.p99.value, 4);
    EXPECT_EQ(both.itl.p50.value, 0);
  }
}

// Two sets of limits are one set with the limits of both.
TEST(TwoSlos, ACapacityMeetsBoth) {
  Scenario scenario = served_at(20);
  scenario.load.requests = 3000;
  scenario.capacity.slo.ttft.p95 = Seconds{2};
  const double loose = served(scenario).capacity.value;
  scenario.capacity.slo.ttft.p95 = Seconds{0.05};
  const double tight = served(scenario).capacity.value;
  EXPECT_LT(tight, loose);
  scenario.capacity.slo.ttft.p95 = Seconds{2};
  scenario.slo.ttft.p95 = Seconds{0.05};
  const Metrics both = served(scenario);
  EXPECT_EQ(both.capacity.value, tight);
  EXPECT_GE(both.slo_attainment, 0.94);
  // Either may state what the other does not.
  scenario.slo = {};
  scenario.slo.itl.p99 = Seconds{0.005};  // a step takes 10 ms
  const Outcome never = evaluate(scenario);
  EXPECT_EQ(never.reason_class, ReasonClass::slo);
  EXPECT_TRUE(never.reason.starts_with("no rate meets capacity.slo and slo: at ")) << never.reason;
  EXPECT_NE(never.reason.find(" req/s itl_p99 is "), std::string::npos) << never.reason;
}

// At the capacity within a loose limit, requests are good, or turned away, by their own.
TEST(TwoSlos, RequestsAreHeldToTheirOwn) {
  Scenario scenario = served_at(20);
  scenario.load.requests = 3000;
  scenario.capacity.slo.tpot.p95 = Seconds{1};
  scenario.capacity.slo.ttft.p50 = Seconds{1};
  scenario.slo.ttft.p50 = Seconds{0.3};
  const Metrics held = served(scenario);
  scenario.load.rate = held.capacity;
  scenario.capacity.slo = {};
  const Metrics same = served(scenario);
  EXPECT_NEAR(held.slo_attainment, same.slo_attainment, 1e-12);
  EXPECT_NEAR(held.goodput / same.goodput, 1, 1e-12);
  EXPECT_EQ(held.slo_met, same.slo_met);
}

}  // namespace
}  // namespace engine

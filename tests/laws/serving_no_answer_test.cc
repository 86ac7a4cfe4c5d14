// Laws of loads that have no figures: the reason names what the load or its limits state, and what to change.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/support/serving_toys.h"

namespace engine {
namespace {

using toys::served_at;

TEST(ServingNoAnswer, NothingMeasuredIsNoAnswer) {
  Scenario scenario = served_at(20);
  scenario.load.requests = 300;  // 15 s
  scenario.load.warmup = Seconds{60};
  Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::infeasible);
  EXPECT_NE(outcome.reason.find("nothing was measured"), std::string::npos) << outcome.reason;
  scenario.capacity.slo.ttft.p95 = Seconds{0.5};
  outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::infeasible);
  EXPECT_NE(outcome.reason.find("nothing was measured"), std::string::npos) << outcome.reason;
  EXPECT_TRUE(std::isnan(outcome.metrics.capacity.value));
}

// What the reason names is what the load states, and so is what it asks to change.
TEST(ServingNoAnswer, TheReasonNamesTheWindowThatIsTooShort) {
  Scenario scenario = served_at(20);
  scenario.load.requests = 300;
  scenario.load.window = Seconds{1e-6};
  const std::string window = evaluate(scenario).reason;
  EXPECT_NE(window.find("a longer load.window"), std::string::npos) << window;
  EXPECT_EQ(window.find("load.warmup"), std::string::npos) << window;
  scenario.load.warmup = Seconds{5};
  const std::string both = evaluate(scenario).reason;
  EXPECT_NE(both.find("a shorter load.warmup, a longer load.window"), std::string::npos) << both;
}

// Which promise cannot be kept is part of the answer.
TEST(ServingNoAnswer, NoRateIsNoAnswerWithoutTheLimit) {
  Scenario scenario = served_at(20);
  scenario.load.requests = 300;
  scenario.capacity.slo.ttft.p99 = Seconds{100};
  scenario.capacity.slo.tpot.mean = Seconds{1e-9};
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.reason_class, ReasonClass::slo);
  EXPECT_TRUE(outcome.reason.starts_with("no rate meets capacity.slo: at ")) << outcome.reason;
  EXPECT_NE(outcome.reason.find(" req/s tpot_mean is "), std::string::npos) << outcome.reason;
  EXPECT_TRUE(outcome.reason.ends_with("and 1e-09 s are allowed")) << outcome.reason;
}

}  // namespace
}  // namespace engine

// Requests that are refused, shed or failed are later than any limit, whatever the limit is on.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>

#include "tests/support/serving_toys.h"

namespace engine {
namespace {

using toys::served_at;

struct Limit {
  std::string name;
  std::function<void(Slo&)> state;
  double may_go = 0;  // share of the requests that may be turned away
};

// Limits that everybody who is let in keeps by far: a step takes 10 ms, an answer 0.2 s, and nobody waits for more than twenty others.
std::array<Limit, 7> generous_limits() {
  return {{{"ttft_mean", [](Slo& slo) { slo.ttft.mean = Seconds{10}; }},
           {"tpot_mean", [](Slo& slo) { slo.tpot.mean = Seconds{10}; }},
           {"itl_mean", [](Slo& slo) { slo.itl.mean = Seconds{10}; }},
           {"e2e_mean", [](Slo& slo) { slo.e2e.mean = Seconds{10}; }},
           {"ttft_p90", [](Slo& slo) { slo.ttft.p90 = Seconds{10}; }, 0.1},
           {"itl_p90", [](Slo& slo) { slo.itl.p90 = Seconds{10}; }, 0.1},
           {"itl_p99", [](Slo& slo) { slo.itl.p99 = Seconds{10}; }, 0.01}}};
}

// Eighty a second can be served. Of those that come, a mean allows nobody to be turned away, a 90th percentile one in ten.
TEST(GivenUpRequests, NoCapacityIsBeyondWhatIsAnswered) {
  for (const Limit& limit : generous_limits()) {
    Scenario scenario = served_at(20);
    scenario.serving.admission.max_queue = 20;
    scenario.load.requests = 4000;
    limit.state(scenario.capacity.slo);
    const Outcome outcome = evaluate(scenario);
    ASSERT_EQ(outcome.status, Status::ok) << limit.name << ": " << outcome.reason;
    const Metrics& metrics = outcome.metrics;
    EXPECT_GT(metrics.capacity.value, 20) << limit.name;
    EXPECT_LT(metrics.capacity.value, 82 / (1 - limit.may_go)) << limit.name;
    EXPECT_GE(metrics.slo_attainment, 1 - limit.may_go) << limit.name;
    EXPECT_EQ(metrics.slo_met, 1) << limit.name;
  }
}

// Half of them are turned away, at any speed that the steps may have.
TEST(GivenUpRequests, NoLimitIsMetByHalfOfTheRequests) {
  for (const Limit& limit : generous_limits()) {
    Scenario scenario = served_at(160);
    scenario.serving.admission.max_queue = 20;
    scenario.load.requests = 2000;
    scenario.output.intervals = true;
    limit.state(scenario.slo);
    const Metrics metrics = evaluate(scenario).metrics;
    EXPECT_NEAR(metrics.slo_attainment, 0.5, 0.05) << limit.name;
    EXPECT_EQ(metrics.slo_met, 0) << limit.name;
    EXPECT_LT(metrics.slo_probability, 1e-3) << limit.name;
    scenario.serving.admission = {};
    scenario.load.rate = RequestsPerSecond{20};
    EXPECT_EQ(evaluate(scenario).metrics.slo_met, 1) << limit.name;
  }
}

// Whom failures cost their answer counts as well, and the reason says so where that leaves no rate.
TEST(GivenUpRequests, TheReasonNamesThem) {
  Scenario scenario = served_at(20);
  scenario.load.requests = 4000;
  scenario.serving.failures = {
      .mean_time_to_failure = Seconds{0.5}, .mean_time_to_repair = Seconds{0.1}, .attempts = 1};
  scenario.capacity.slo.ttft.mean = Seconds{10};
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.reason_class, ReasonClass::slo);
  EXPECT_TRUE(outcome.reason.starts_with("no rate meets capacity.slo: at ")) << outcome.reason;
  EXPECT_TRUE(outcome.reason.ends_with(
      " requests are refused, shed or failed, and count as later than ttft_mean"))
      << outcome.reason;
}

}  // namespace
}  // namespace engine

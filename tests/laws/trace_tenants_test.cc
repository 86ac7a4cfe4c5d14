// Tenants of a recorded load are those that its rows name, whatever the load says of tenants.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "tests/support/serving_toys.h"

namespace engine {
namespace {

// Twice what can be served; of six requests, the first tenant sends three, the second two, the third one.
Resources three_tenants() {
  auto trace = std::make_shared<Trace>();
  for (int i = 0; i < 1200; ++i) {
    trace->arrival.push_back(double(i) / 80);
    trace->prompt.push_back(16);
    trace->output.push_back(20);
    trace->tenant.push_back(i % 6 < 3 ? 0 : i % 6 < 5 ? 1 : 2);
  }
  Resources resources;
  resources.traces["toy"] = std::move(trace);
  return resources;
}

TEST(TraceTenants, AreThoseOfTheTrace) {
  const Resources resources = three_tenants();
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.output.requests = false;
  scenario.serving.max_num_seqs = 8;  // 8 answers every 200 ms
  scenario.slo.ttft.p99 = Seconds{1};
  // Everybody is answered in the end: 3, 2 and 1 of six parts.
  const double jain = 6.0 * 6 / (3 * (9 + 4 + 1));
  for (const std::int64_t stated : {1, 2, 3, 50}) {
    scenario.load.tenants = stated;
    const Outcome outcome = evaluate(scenario, resources);
    ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
    EXPECT_NEAR(outcome.metrics.tenant_fairness, jain, 1e-9) << stated;
    EXPECT_GT(outcome.metrics.ttft_worst_tenant.value, 1) << stated;
    EXPECT_LT(outcome.metrics.slo_attainment_worst_tenant, 0.5) << stated;
  }
  // Who asks for less than its share does not wait for the others.
  const Metrics first_come = evaluate(scenario, resources).metrics;
  scenario.serving.ordering = Ordering::fair_share;
  const Metrics fair = evaluate(scenario, resources).metrics;
  EXPECT_GT(fair.slo_attainment, 1.3 * first_come.slo_attainment);
}

TEST(TraceTenants, WithoutThemThereAreNone) {
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.load.tenants = 3;
  const Resources resources = toys::trace({{0, 16, 20}, {0.1, 16, 20}});
  EXPECT_TRUE(std::isnan(evaluate(scenario, resources).metrics.tenant_fairness));
}

}  // namespace
}  // namespace engine

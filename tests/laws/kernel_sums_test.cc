// Rows of kernels say where the time of steps went: all of them together are the time in which replicas had a step, however tokens
// travel to experts and whatever passes beside something else.
#include <gtest/gtest.h>

#include <string>

#include "engine/evaluate.h"
#include "engine/scenario.h"
#include "tests/support/serving_toys.h"

namespace engine {
namespace {

Scenario sharing_experts(ExpertTravel travel, bool halves) {
  Scenario scenario = toys::scenario();
  scenario.task = Task::serve;
  scenario.model = toys::mixture();
  scenario.parallel = {.dp = 4, .ep = 4};
  scenario.serving.expert_exchange = travel;
  scenario.serving.two_batch_overlap = halves;
  scenario.load.rate = RequestsPerSecond{40};
  scenario.load.requests = 200;
  scenario.load.lengths = {.distribution = LengthKind::lognormal, .prompt = 400, .output = 60};
  scenario.load.measure = MeasureKind::whole;
  return scenario;
}

constexpr ExpertTravel kWays[] = {ExpertTravel::low_latency, ExpertTravel::normal,
                                  ExpertTravel::gathered, ExpertTravel::automatic,
                                  ExpertTravel::switched};

std::string named(ExpertTravel travel, bool halves) {
  return std::string(name_of(travel)) + (halves ? ", in halves" : "");
}

TEST(KernelSums, AreTheTimeOfStepsHoweverTokensTravel) {
  for (const ExpertTravel travel : kWays) {
    for (const bool halves : {false, true}) {
      const Scenario scenario = sharing_experts(travel, halves);
      const Outcome outcome = evaluate(scenario);
      ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
      double spent = 0, exchanged = 0, hidden = 0;
      for (const KernelRow& row : outcome.kernels) {
        spent += row.work.exposed().value;
        hidden += row.work.hidden.value;
        if (row.op != OpName::expert_dispatch && row.op != OpName::expert_combine) continue;
        exchanged += row.work.exposed().value;
      }
      const Metrics& metrics = outcome.metrics;
      const double busy = metrics.utilization * metrics.makespan.value * 4;
      EXPECT_NEAR(spent / busy, 1, 1e-9) << named(travel, halves);
      EXPECT_NEAR(metrics.communication_time.value, exchanged, 1e-9 * busy)
          << named(travel, halves);
      EXPECT_EQ(hidden > 0, halves) << named(travel, halves);
    }
  }
}

// Tokens that leave their node on the way to experts share adapters with KV caches, whichever kernels carry them.
TEST(KernelSums, TokensThatLeaveANodeShareItsAdapters) {
  for (const ExpertTravel travel : kWays) {
    Scenario scenario = sharing_experts(travel, false);
    scenario.cluster.devices_per_node = 2;
    scenario.prefill.present = true;
    scenario.transfer.contention = TransferContention::collectives;
    fill_roles(scenario);
    const Outcome outcome = evaluate(scenario);
    ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
    EXPECT_GT(outcome.metrics.transfer_slowdown, 1) << named(travel, false);
    EXPECT_GT(outcome.metrics.collective_slowdown, 1) << named(travel, false);
    scenario.cluster.devices_per_node = scenario.prefill.deployment.cluster.devices_per_node = 8;
    const Outcome inside = evaluate(scenario);
    ASSERT_EQ(inside.status, Status::ok) << inside.reason;
    EXPECT_EQ(inside.metrics.transfer_slowdown, 1) << named(travel, false);
  }
}

}  // namespace
}  // namespace engine

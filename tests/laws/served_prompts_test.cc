// Prompts of served loads. A load of one request asks for the steps that the request alone asks for, whatever its length: times
// between the points of a table lie on the stairs that tiles make, not below them.
#include <gtest/gtest.h>

#include "engine/evaluate.h"
#include "engine/serving/settings/policy_table.h"
#include "tests/support/calibrations.h"
#include "tests/support/serving_toys.h"
#include "tests/support/shipped.h"

namespace engine {
namespace {

TEST(ServedPrompts, TakeWhatTheyTakeAlone) {
  const Resources resources = toys::transfer_resources();
  for (const char* device : {"a100-80gb-sxm", "h100-sxm", "b200-sxm"}) {
    Scenario alone = toys::shipped("models", "llama-3.1-70b");
    alone.device = toys::shipped("devices", device).device;
    alone.host = toys::shipped("hosts", "none").host;
    alone.calibration.tier = TierChoice::transfer;
    alone.parallel.tp = 4;
    alone.task = Task::request;
    alone.request.output = 1;
    for (const std::int64_t prompt : {256, 257, 300, 321, 385, 513, 641, 900, 1025, 1281, 1800}) {
      alone.request.prompt = prompt;
      Scenario served = alone;
      served.task = Task::serve;
      served.load = {};
      served.load.arrivals = ArrivalKind::closed;
      served.load.clients = served.load.requests = 1;
      served.load.measure = MeasureKind::whole;
      served.load.lengths = {.prompt = prompt, .output = 1};
      const Outcome one = evaluate(alone, resources), other = evaluate(served, resources);
      ASSERT_EQ(one.status, Status::ok) << one.reason;
      ASSERT_EQ(other.status, Status::ok) << other.reason;
      EXPECT_NEAR(other.metrics.ttft / one.metrics.ttft, 1, 0.02) << device << ", " << prompt;
    }
  }
}

// Around the most tokens of a step: a prompt that decodes leave no room for in any step waits for none of them to end, whatever
// the policy.
TEST(ServedPrompts, OneTokenMoreIsNeverServedSooner) {
  for (std::size_t policy = 0; policy < kPolicies.size(); ++policy) {
    const auto throughput = [&](std::int64_t prompt) {
      Scenario scenario = toys::served_at(1);
      scenario.serving.policy = static_cast<PolicyName>(policy);
      scenario.serving.max_num_batched_tokens = scenario.serving.chunk = 100;
      scenario.serving.kv_blocks = 10'000;
      scenario.model.max_context = 400;
      scenario.load.arrivals = ArrivalKind::closed;
      scenario.load.clients = 12;
      scenario.load.lengths = {.prompt = prompt, .output = 50};
      const Outcome outcome = evaluate(scenario);
      EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
      return outcome.metrics.throughput.value;
    };
    double longer = throughput(110);
    for (std::int64_t prompt = 109; prompt >= 80; --prompt) {
      const double shorter = throughput(prompt);
      EXPECT_GE(shorter, 0.95 * longer) << kPolicies[policy].name << ", " << prompt;
      longer = shorter;
    }
  }
}

}  // namespace
}  // namespace engine

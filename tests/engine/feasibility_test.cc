#include "engine/feasibility.h"

#include <gtest/gtest.h>

#include "engine/evaluate.h"
#include "engine/leaves/leaves.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

Scenario served() {
  Scenario scenario = toys::scenario();
  scenario.task = Task::serve;
  scenario.load.requests = 5;
  scenario.load.lengths.prompt = 10;
  scenario.load.lengths.output = 3;
  return scenario;
}

TEST(Feasibility, HeadsAndExpertsMustBeShared) {
  Scenario scenario = toys::scenario();
  for (const std::int64_t kv_heads : {scenario.model.heads - 1, 2 * scenario.model.heads}) {
    scenario.model.kv_heads = kv_heads;
    const Outcome outcome = evaluate(scenario);
    EXPECT_EQ(outcome.status, Status::infeasible);
    EXPECT_EQ(outcome.reason, "model.heads " + std::to_string(scenario.model.heads) +
                                  " is not a multiple of model.kv_heads " +
                                  std::to_string(kv_heads));
  }
  scenario = toys::scenario();
  scenario.model = toys::mixture();
  scenario.model.moe.top_k = scenario.model.moe.experts + 1;
  EXPECT_EQ(evaluate(scenario).reason,
            "model.moe.top_k " + std::to_string(scenario.model.moe.top_k) +
                " exceeds model.moe.experts " + std::to_string(scenario.model.moe.experts));
}

TEST(Feasibility, ReplicasCountAgainstTheCluster) {
  Scenario scenario = served();
  scenario.cluster.nodes = 1;
  scenario.parallel.tp = 2;
  scenario.serving.replicas = 4;
  EXPECT_EQ(evaluate(scenario).status, Status::ok);
  for (const auto& [replicas, dp] : {std::pair{5, 1}, std::pair{1, 5}, std::pair{2, 3}}) {
    scenario.serving.replicas = replicas;
    scenario.parallel.dp = dp;
    const Outcome outcome = evaluate(scenario);
    EXPECT_EQ(outcome.status, Status::infeasible);
    EXPECT_EQ(outcome.reason_class, ReasonClass::cluster);
    EXPECT_EQ(outcome.metrics.devices, 2 * replicas * dp);
  }
  EXPECT_EQ(evaluate(scenario).reason, "needs 12 devices; the cluster has 8");
  // A step on its own has no replicas behind a router.
  scenario.task = Task::step;
  scenario.parallel.dp = 1;
  scenario.serving.replicas = 100;
  EXPECT_EQ(evaluate(scenario).status, Status::ok);
}

TEST(Feasibility, DevicesAreCountedWhateverTheReason) {
  for (const Task task : {Task::step, Task::request, Task::serve}) {
    Scenario good = served();
    good.task = task;
    good.parallel.tp = 2;
    good.serving.replicas = 3;
    const double devices = evaluate(good).metrics.devices;
    EXPECT_EQ(devices, task == Task::serve ? 6 : 2);
    Scenario formats = good, memory = good, links = good, calibration = good;
    formats.quant.weights = formats.quant.activations = Dtype::fp4;
    memory.device.memory_capacity = Bytes{1e6};
    links.device.scale_up.bandwidth = BytesPerSecond{0};
    calibration.calibration.tier = TierChoice::transfer;
    for (const Scenario& bad : {formats, memory, links, calibration}) {
      EXPECT_NE(evaluate(bad).status, Status::ok);
      EXPECT_EQ(evaluate(bad).metrics.devices, devices) << evaluate(bad).reason;
    }
  }
}

TEST(Feasibility, NoSequenceOutgrowsWhatTheModelIsMadeFor) {
  Scenario scenario = toys::scenario();
  scenario.model.max_context = 4096;
  const auto expect = [&scenario](Status status, const std::string& reason) {
    const Outcome outcome = evaluate(scenario);
    EXPECT_EQ(outcome.status, status) << outcome.reason;
    EXPECT_EQ(outcome.reason, reason);
    if (status != Status::ok) {
      EXPECT_EQ(outcome.reason_class, ReasonClass::context);
    }
  };
  scenario.step.context = 4096;
  expect(Status::ok, "");
  scenario.step.context = 4097;
  expect(Status::infeasible, "step.context (4097) exceeds model.max_context (4096)");
  scenario.step.context = 2048;
  scenario.step.longest_context = 4097;
  expect(Status::infeasible, "step.longest_context (4097) exceeds model.max_context (4096)");
  scenario.step = {.phase = StepPhase::prefill, .prompt = 4000, .cached = 96};
  expect(Status::ok, "");
  scenario.step.cached = 97;
  expect(Status::infeasible, "step.cached + step.prompt (4097) exceeds model.max_context (4096)");
  scenario.task = Task::request;
  scenario.request = {.prompt = 4000, .cached = 0, .output = 96};
  expect(Status::ok, "");
  scenario.request.output = 97;
  expect(
      Status::infeasible,
      "request.cached + request.prompt + request.output (4097) exceeds model.max_context (4096)");
  // A model that states no limit has none.
  scenario.model.max_context = 0;
  expect(Status::ok, "");
}

TEST(Feasibility, ALoadOfWhichNothingCanBeServedIsInfeasible) {
  Scenario scenario = served();
  scenario.model.max_context = 12;
  scenario.load.lengths.distribution = LengthKind::fixed;
  EXPECT_EQ(evaluate(scenario).reason,
            "load.lengths.prompt + load.lengths.output (13) exceeds model.max_context (12)");
  scenario.model.max_context = 0;
  EXPECT_EQ(evaluate(scenario).metrics.requests_finished, 5);
}

TEST(Feasibility, EveryReasonHasAClassAndNoReasonNamesTheDevice) {
  Scenario scenario = toys::scenario();
  scenario.device.name = "some-device";
  scenario.parallel.tp = 2;
  Scenario format = scenario, wide = scenario, inside = scenario, between = scenario;
  format.quant.activations = format.quant.weights = Dtype::fp4;
  wide.device.peak.bf16 = wide.device.peak.fp16 = FlopsPerSecond{0};
  wide.quant.activations = wide.quant.weights = Dtype::fp8;
  inside.device.scale_up.bandwidth = inside.device.host_link.bandwidth = BytesPerSecond{0};
  between.parallel.tp = 16;
  between.device.scale_out.bandwidth = BytesPerSecond{0};
  for (const auto& [bad, expected] :
       {std::pair{format, ReasonClass::format}, std::pair{wide, ReasonClass::format},
        std::pair{inside, ReasonClass::links}, std::pair{between, ReasonClass::links}}) {
    const Outcome outcome = evaluate(bad);
    EXPECT_EQ(outcome.status, Status::infeasible);
    EXPECT_EQ(outcome.reason_class, expected) << outcome.reason;
    // A renamed device has the same key: what is found under it must be true of both.
    EXPECT_EQ(outcome.reason.find("some-device"), std::string::npos) << outcome.reason;
  }
}

}  // namespace
}  // namespace engine

// Sequences of models with scans that several devices share (parallel.cp): in a step, before a handover, and in training.
#include <gtest/gtest.h>

#include <string>

#include "engine/evaluate.h"
#include "tests/support/shipped.h"

namespace engine {
namespace {

constexpr const char* kHybrids[] = {"bamba-9b", "mamba-codestral-7b", "qwen3-next-80b-a3b",
                                    "kimi-linear-48b-a3b", "nemotron-nano-9b-v2"};
constexpr ContextExchange kExchanges[] = {ContextExchange::ring, ContextExchange::all_gather,
                                          ContextExchange::all_to_all};

// On devices with room for all of it, in one node over links that take no time.
Scenario shared(const char* model, std::int64_t cp, ContextExchange exchange) {
  Scenario point = toys::shipped("models", model);
  point.device = toys::shipped("devices", "h100-sxm").device;
  point.device.memory_capacity = Bytes{1e13};
  point.device.scale_up.bandwidth = BytesPerSecond{1e20};
  point.device.scale_up.latency = Seconds{0};
  point.cluster.devices_per_node = 8;
  point.host = toys::shipped("hosts", "none").host;
  point.step = {.phase = StepPhase::prefill, .batch = 1, .prompt = 65'536};
  point.parallel.cp = cp;
  point.serving.context = exchange;
  return point;
}

Outcome outcome_of(const Scenario& point) {
  const Outcome outcome = evaluate(point, toys::transfer_resources());
  EXPECT_EQ(outcome.status, Status::ok) << point.model.name << ": " << outcome.reason;
  return outcome;
}

Work of_scans(const Outcome& outcome) {
  Work sum;
  for (const KernelRow& row : outcome.kernels) {
    if (row.op == OpName::scan) sum.add(row.work, 1);
  }
  return sum;
}

// Devices share the arithmetic of scans, and a state that each has some heads of.
TEST(SharedScans, DivideArithmeticAndStatesOverAFreeNetwork) {
  for (const char* model : kHybrids) {
    const Outcome alone = outcome_of(shared(model, 1, ContextExchange::ring));
    for (const ContextExchange exchange : kExchanges) {
      double last = alone.metrics.step_time.value;
      for (const std::int64_t cp : {2, 4}) {
        const Outcome one = outcome_of(shared(model, cp, exchange));
        const double flops = of_scans(one).flops.value * double(cp);
        EXPECT_NEAR(flops / of_scans(alone).flops.value, 1, 0.02) << model << cp;
        EXPECT_LT(one.metrics.step_time.value, last) << model << cp;
        EXPECT_GT(one.metrics.step_time.value, last / 2.1) << model << cp;
        last = one.metrics.step_time.value;
      }
    }
  }
}

// What they send one another takes its time on a link that has some, and no less over a slower one.
TEST(SharedScans, AreExchangedOverTheLinkThereIs) {
  for (const char* model : kHybrids) {
    const double free = outcome_of(shared(model, 4, ContextExchange::ring)).metrics.step_time.value;
    double last = free;
    for (const double bandwidth : {450e9, 50e9, 5e9}) {
      Scenario point = shared(model, 4, ContextExchange::ring);
      point.device.scale_up.bandwidth = BytesPerSecond{bandwidth};
      const double step = outcome_of(point).metrics.step_time.value;
      EXPECT_GT(step, last) << model;
      last = step;
    }
  }
}

TEST(SharedScans, HeadsThatCannotBeDividedAreNamed) {
  Scenario point = shared("bamba-9b", 4, ContextExchange::ring);
  point.model.scan.heads = 126;
  const Outcome outcome = evaluate(point, toys::transfer_resources());
  EXPECT_EQ(
      outcome.reason,
      "model.scan.heads 126 cannot be split 4 ways (parallel.tp x parallel.cp, which a scan of "
      "shared sequences splits heads over)");
}

// Prompts that another deployment reads together: sooner there, and the same state is carried.
TEST(SharedScans, AreReadTogetherForAnother) {
  const auto read_by = [](std::int64_t cp) {
    Scenario point = shared("bamba-9b", 1, ContextExchange::ring);
    point.task = Task::request;
    point.request = {.batch = 1, .prompt = 65'536, .output = 16};
    point.prefill.present = true;
    fill_roles(point);
    point.prefill.deployment.parallel.cp = cp;
    return outcome_of(point).metrics;
  };
  EXPECT_LT(read_by(4).ttft, read_by(2).ttft);
  EXPECT_LT(read_by(2).ttft, read_by(1).ttft);
  EXPECT_NEAR(read_by(4).tpot / read_by(1).tpot, 1, 1e-9);
}

TEST(SharedScans, AreTrained) {
  for (const char* model : kHybrids) {
    const auto trained = [model](std::int64_t cp) {
      Scenario point = shared(model, cp, ContextExchange::ring);
      point.task = Task::train;
      point.model.max_context = 0;
      point.train = {.sequence = 32'768, .micro_batch = 1, .global_batch = 2};
      return outcome_of(point);
    };
    const Outcome alone = trained(1), four = trained(4);
    EXPECT_NEAR(4 * of_scans(four).flops / of_scans(alone).flops, 1, 0.02) << model;
    EXPECT_LT(four.metrics.iteration_time, alone.metrics.iteration_time) << model;
    EXPECT_GT(4 * four.metrics.iteration_time, alone.metrics.iteration_time) << model;
  }
}

}  // namespace
}  // namespace engine

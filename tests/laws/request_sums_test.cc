// An answer takes as long as its steps, one after another, though few of them are timed.
#include <gtest/gtest.h>

#include <string>

#include "engine/evaluate.h"
#include "engine/step/stand_ins.h"
#include "tests/support/shipped.h"

namespace engine {
namespace {

constexpr std::int64_t kPrompt = 790, kOutput = 600;

// Of an H200 there is a sweep, in which keys are read tile by tile.
struct Machine {
  const char* device;
  TierChoice tier;
};
constexpr Machine kMachines[] = {{"h200-sxm", TierChoice::best},
                                 {"h200-sxm", TierChoice::roofline},
                                 {"a100-80gb-sxm", TierChoice::transfer}};
// Plain attention, sliding windows, latents, and states that do not grow.
constexpr const char* kModels[] = {"llama-3.1-8b", "gemma-3-12b", "deepseek-v2-lite", "bamba-9b"};

Scenario point(const Machine& machine, const char* model) {
  Scenario scenario;
  scenario.device = toys::shipped("devices", machine.device).device;
  scenario.model = toys::shipped("models", model).model;
  scenario.host = toys::shipped("hosts", "vllm-v1").host;
  scenario.calibration.tier = machine.tier;
  return scenario;
}

Metrics figures(const Scenario& scenario) {
  const Outcome outcome = evaluate(scenario, toys::shipped_resources());
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome.metrics;
}

TEST(RequestSums, AnAnswerTakesAsLongAsItsSteps) {
  for (const Machine& machine : kMachines) {
    for (const char* model : kModels) {
      Scenario scenario = point(machine, model);
      double steps = 0;
      scenario.task = Task::step;
      for (std::int64_t made = 1; made < kOutput; ++made) {
        scenario.step = {.phase = StepPhase::decode, .batch = 24, .context = kPrompt + made};
        steps += figures(scenario).step_time.value;
      }
      scenario.task = Task::request;
      scenario.request = {.batch = 24, .prompt = kPrompt, .output = kOutput};
      const Metrics whole = figures(scenario);
      EXPECT_NEAR((whole.e2e - whole.ttft).value / steps, 1, kStandInTolerance)
          << machine.device << " " << name_of(machine.tier) << " " << model;
    }
  }
}

}  // namespace
}  // namespace engine

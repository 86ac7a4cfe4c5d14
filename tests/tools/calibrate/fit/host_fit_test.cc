// A host that is fitted to steps gives their times, and says which of its terms they tell.
#include "tools/calibrate/fit/host_fit.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/evaluate.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"

namespace tools {
namespace {

using engine::HostSettings;
using engine::Scenario;
using engine::Seconds;

Scenario decode_of(std::int64_t batch, const char* model, const char* host) {
  Scenario scenario = toys::shipped("models", model);
  scenario.device = toys::shipped("devices", "h100-sxm").device;
  scenario.host = toys::shipped("hosts", host).host;
  scenario.calibration.tier = engine::TierChoice::transfer;
  scenario.step = {.batch = batch, .context = 1000};
  return scenario;
}

// Steps as long as those of another host would be.
std::vector<TimedStep> steps_of(const HostSettings& real, const char* begun_with) {
  std::vector<TimedStep> steps;
  for (const char* model : {"llama-3.1-8b", "llama-3.2-1b", "qwen3-14b"}) {
    for (const std::int64_t batch : {1, 4, 16, 64, 128}) {
      Scenario scenario = decode_of(batch, model, begun_with);
      Scenario measured = scenario;
      measured.host = real;
      steps.push_back(
          {scenario,
           engine::evaluate(measured, toys::transfer_resources()).metrics.step_time.value});
    }
  }
  return steps;
}

const FittedTerm& term_of(const HostFit& fit, const std::string& field) {
  return *std::ranges::find(fit.terms, field, &FittedTerm::field);
}

TEST(HostFit, FindsTheHostThatTheStepsHad) {
  HostSettings real = toys::shipped("hosts", "vllm-v1").host;
  real.kernel_gap = Seconds{0.5e-6};
  real.asynchronous = false;
  real.step_overhead = Seconds{900e-6};
  real.step_per_sequence = Seconds{20e-6};
  std::vector<TimedStep> steps = steps_of(real, "vllm-v1");
  for (TimedStep& step : steps) step.scenario.host.asynchronous = false;
  const HostFit fit = fit_host(steps, toys::transfer_resources());
  EXPECT_GT(fit.before.mean, 0.05);
  EXPECT_LT(fit.unseen.mean, 0.01);
  EXPECT_NEAR(fit.host.kernel_gap / real.kernel_gap, 1, 0.2);
  EXPECT_NEAR(fit.host.step_overhead / real.step_overhead, 1, 0.1);
  EXPECT_NEAR(fit.host.step_per_sequence / real.step_per_sequence, 1, 0.1);
  for (const FittedTerm& term : fit.terms) {
    EXPECT_LE(term.low, term.value) << term.field;
    EXPECT_GE(term.high, term.value) << term.field;
  }
}

TEST(HostFit, LeavesAloneWhatNoStepTells) {
  const HostSettings start = toys::shipped("hosts", "tensorrt-llm").host;
  const HostFit fit = fit_host(steps_of(start, "tensorrt-llm"), toys::transfer_resources());
  // Decodes that a graph holds launch nothing one by one and read no prompt.
  for (const char* field : {"layer_cost", "launch_cost"})
    EXPECT_FALSE(term_of(fit, field).told) << field;
  EXPECT_TRUE(term_of(fit, "kernel_gap").told);
  EXPECT_EQ(fit.host.layer_cost, start.layer_cost);
  EXPECT_EQ(fit.host.launch_cost, start.launch_cost);
  EXPECT_LT(fit.unseen.mean, 1e-3);  // the host that it began with is the best one
  const std::string text = host_fit_text(fit, "tensorrt-llm");
  EXPECT_NE(text.find("from: tensorrt-llm\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("layer_cost"), std::string::npos) << text;
}

}  // namespace
}  // namespace tools

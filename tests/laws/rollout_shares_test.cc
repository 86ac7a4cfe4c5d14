// Reinforcement learning: which samples share a prompt, and what all devices draw together.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/rollout_toy.h"

namespace engine {
namespace {

using toys::apart;
using toys::figures_of;
using toys::learning;

TEST(Rollout, CachedPromptsAreReadOnce) {
  Scenario scenario = learning();
  scenario.train.sequence = 8192;
  scenario.train.rollout = {.prompts = 2, .samples = 32, .lengths = {.prompt = 8000, .output = 8}};
  const Seconds each = figures_of(scenario).rollout_time;
  scenario.rollout.deployment.serving.prefix_caching = true;
  EXPECT_LT(figures_of(scenario).rollout_time, each * 0.7);
}

// Samples of a prompt are on one replica as long as no replica has more to do for it. So each prompt is read once, however many
// replicas there are, and with fewer prompts than replicas each replica reads one.
TEST(Rollout, SamplesOfAPromptAreTogether) {
  Scenario scenario = learning();
  scenario.train.sequence = 8002;
  scenario.train.global_batch = 8;
  scenario.rollout.deployment.serving.prefix_caching = true;
  const auto time = [&](std::int64_t prompts, std::int64_t samples) {
    scenario.train.rollout = {
        .prompts = prompts, .samples = samples, .lengths = {.prompt = 8000, .output = 2}};
    return figures_of(scenario).rollout_time;
  };
  // Of eight replicas each has eight samples of one prompt.
  const Seconds one_each = time(8, 8);
  EXPECT_LT(one_each, time(8, 1) * 1.5);
  for (const std::int64_t prompts : {1, 2, 4}) EXPECT_EQ(time(prompts, 64 / prompts), one_each);
  EXPECT_GT(time(16, 8), one_each * 1.5);
  EXPECT_LT(time(16, 8), one_each * 2.1);
  // Twelve prompts of four samples are six samples for each replica: no replica has twice as many as another.
  const auto answers = [&](std::int64_t prompts, std::int64_t samples) {
    scenario.train.rollout = {
        .prompts = prompts, .samples = samples, .lengths = {.prompt = 16, .output = 4000}};
    return figures_of(scenario).rollout_time;
  };
  EXPECT_NEAR(answers(12, 4) / answers(8, 6), 1, 0.01);
}

// Every device is counted for the whole iteration, at rest or at work.
TEST(Rollout, EnergyIsOfAllDevicesAndPhases) {
  constexpr double kRest = 80, kLimit = 700;
  const auto powered = [&](Scenario scenario) {
    for (Deployment* on : {static_cast<Deployment*>(&scenario), &scenario.rollout.deployment}) {
      on->device.idle_power = Watts{kRest};
      on->device.busy_power = Watts{200};
      on->device.tensor_power = Watts{300};
      on->device.memory_power = Watts{150};
      on->device.power_limit = Watts{kLimit};
    }
    return scenario;
  };
  const auto power = [](const Metrics& figures) {
    return figures.iteration_energy.value / figures.iteration_time.value / figures.devices;
  };
  for (const Scenario& scenario : {learning(), apart()}) {
    EXPECT_TRUE(std::isnan(figures_of(scenario).iteration_energy.value));
    Scenario more = powered(scenario);
    const Metrics figures = figures_of(more);
    EXPECT_GT(power(figures), kRest);
    EXPECT_LT(power(figures), kLimit);
    more.train.rollout.epochs = 2;
    EXPECT_GT(figures_of(more).iteration_energy, figures.iteration_energy);
    more.train.rollout = powered(scenario).train.rollout;
    more.train.rollout.scoring_passes = 3;
    EXPECT_GT(figures_of(more).iteration_energy, figures.iteration_energy);
    more.train.rollout = powered(scenario).train.rollout;
    more.train.tokens = 1e9;
    const Metrics run = figures_of(more);
    EXPECT_NEAR(run.run_energy / run.iteration_energy, run.run_time / run.iteration_time, 1e-6);
  }
  // The same work, and less time at rest.
  Scenario beside = powered(apart());
  const Metrics after = figures_of(beside);
  beside.train.rollout.asynchronous = true;
  const Metrics meanwhile = figures_of(beside);
  const Seconds saved = after.iteration_time - meanwhile.iteration_time;
  EXPECT_NEAR((after.iteration_energy - meanwhile.iteration_energy).value,
              kRest * saved.value * after.devices, 1e-6 * after.iteration_energy.value);
}

}  // namespace
}  // namespace engine

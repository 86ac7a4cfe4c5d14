// Reinforcement learning: samples by the serving engine, scores, updates, and weights on their way between layouts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/evaluate.h"
#include "engine/tasks/train/rollout.h"
#include "tests/support/rollout_toy.h"
#include "tests/support/toys.h"
#include "tests/support/training_toy.h"

namespace engine {
namespace {

using toys::apart;
using toys::figures_of;
using toys::learning;

TEST(Rollout, PhasesAddUp) {
  for (const Scenario& scenario : {learning(), apart()}) {
    const Metrics figures = figures_of(scenario);
    EXPECT_NEAR((figures.rollout_time + figures.scoring_time + figures.update_time +
                 figures.weight_transfer_time) /
                    figures.iteration_time,
                1, 1e-12);
    for (const Seconds phase : {figures.rollout_time, figures.scoring_time, figures.update_time,
                                figures.weight_transfer_time}) {
      EXPECT_GT(phase.value, 0);
    }
    EXPECT_NEAR(figures.samples_per_s * figures.iteration_time.value, 64, 1e-9);
    EXPECT_NEAR(figures.tokens_per_s * figures.iteration_time.value, 64 * 600, 1e-6);
    EXPECT_NEAR(figures.rollout_tokens_per_s * figures.rollout_time.value, 64 * 400, 1e-6);
  }
}

TEST(Rollout, BesideTheUpdateTheLongerOneCounts) {
  Scenario scenario = apart();
  scenario.train.rollout.asynchronous = true;
  for (const std::int64_t replicas : {1, 4, 64}) {
    scenario.rollout.deployment.serving.replicas = replicas;
    const Metrics figures = figures_of(scenario);
    const Seconds longer =
        std::max(figures.rollout_time, figures.scoring_time + figures.update_time);
    EXPECT_NEAR((longer + figures.weight_transfer_time) / figures.iteration_time, 1, 1e-12);
  }
}

// Whoever makes samples does not train meanwhile, and is rented all the same.
// Every optimizer step of an iteration waits for the slowest link; beside samples that take longer anyway, none is any longer for it.
TEST(Rollout, SlowLinksDelayEveryUpdate) {
  Scenario scenario = apart();
  scenario.train.overlap = false;
  const auto delay = [&] {
    scenario.train.link_jitter = 0;
    const Seconds undisturbed = figures_of(scenario).iteration_time;
    scenario.train.link_jitter = 0.3;
    return figures_of(scenario).iteration_time - undisturbed;
  };
  const Seconds once = delay(), update = figures_of(scenario).update_time;
  EXPECT_GT(once.value, 0);
  scenario.train.rollout.epochs = 3;
  const Seconds longer = figures_of(scenario).update_time;
  EXPECT_GT(longer, update * 2);
  EXPECT_NEAR(delay() / once, longer / update, 1e-6);
  scenario.train.rollout.epochs = 1;
  scenario.train.rollout.asynchronous = true;
  scenario.train.rollout.scoring_passes = 0;
  scenario.train.rollout.lengths.output = 1500;
  scenario.rollout.deployment.serving.replicas = 1;
  const Metrics figures = figures_of(scenario);
  EXPECT_GT(figures.rollout_time, figures.update_time + once * 3);
  EXPECT_EQ(delay().value, 0);
}

TEST(Rollout, MoreDevicesForTheSameSpeedAreLessUsed) {
  Scenario scenario = apart();
  scenario.train.rollout.asynchronous = true;
  const auto used = [&](std::int64_t replicas) {
    scenario.rollout.deployment.serving.replicas = replicas;
    const Metrics figures = figures_of(scenario);
    return figures.model_flops_utilization / figures.tokens_per_s_per_device;
  };
  const double few = used(1);
  for (const std::int64_t replicas : {2, 16, 64}) EXPECT_NEAR(used(replicas) / few, 1, 1e-12);
}

// Drawn lengths differ from replicate to replicate, stated ones do not.
TEST(Rollout, ReplicatesDrawOtherSamples) {
  for (const LengthKind kind : {LengthKind::fixed, LengthKind::lognormal}) {
    Scenario scenario = apart();
    scenario.train.rollout.lengths.distribution = kind;
    const Seconds one = figures_of(scenario).rollout_time;
    scenario.replicate = 1;
    const Seconds other = figures_of(scenario).rollout_time;
    scenario.replicate = 0;
    scenario.seed = 7;
    const Seconds third = figures_of(scenario).rollout_time;
    EXPECT_EQ(one == other, kind == LengthKind::fixed);
    EXPECT_EQ(one == third, kind == LengthKind::fixed);
  }
}

// Whichever phase decides, its kernels may be off.
TEST(Rollout, IntervalsHoldTheIteration) {
  for (const std::int64_t replicas : {1, 64}) {
    Scenario scenario = apart();
    scenario.train.rollout.asynchronous = true;
    scenario.rollout.deployment.serving.replicas = replicas;
    const Metrics figures = figures_of(scenario);
    EXPECT_LE(figures.iteration_time_low, figures.iteration_time);
    EXPECT_GT(figures.iteration_time_high, figures.iteration_time);
  }
}

// Samples take as long as the same requests take to be served at once.
TEST(Rollout, IsAServedBatch) {
  const Scenario scenario = apart();
  Scenario served = scenario;
  static_cast<Deployment&>(served) = scenario.rollout.deployment;
  served.task = Task::serve;
  served.rollout.present = false;
  served.load.arrivals = ArrivalKind::closed;
  served.load.clients = served.load.requests = 64;
  served.load.lengths = scenario.train.rollout.lengths;
  served.load.measure = MeasureKind::whole;
  const Metrics figures = figures_of(served);
  EXPECT_NEAR(figures_of(scenario).rollout_tokens_per_s / figures.output.value, 1, 1e-9);
}

// No sample is longer than a sequence that is trained on, however widely lengths are spread.
TEST(Rollout, SamplesEndWhereSequencesDo) {
  Scenario longest = learning();
  longest.train.rollout.lengths.output = longest.train.sequence - 200;
  const Seconds most = figures_of(longest).rollout_time;
  Scenario scenario = learning();
  scenario.train.rollout.lengths = {.distribution = LengthKind::lognormal,
                                    .prompt = 200,
                                    .output = 2000,
                                    .prompt_cv = 0,
                                    .output_cv = 3};
  const Metrics figures = figures_of(scenario);
  EXPECT_LE(figures.rollout_time, most);
  EXPECT_LE(figures.tokens_per_s * figures.iteration_time.value, 64.0 * 2048);
  // And where something shorter is stated, there.
  scenario.train.rollout.lengths.total_max = 900;
  EXPECT_LE(figures_of(scenario).tokens_per_s * figures_of(scenario).iteration_time.value,
            64.0 * 900);
}

TEST(Rollout, DevicesAreCountedWhereTheyAre) {
  EXPECT_EQ(figures_of(learning()).devices, 8);
  EXPECT_EQ(figures_of(apart()).devices, 12);
  EXPECT_NEAR(figures_of(apart()).rent / figures_of(learning()).rent, 1.5, 1e-12);
}

// An update of twice the epochs takes twice the steps, and scoring is one forward pass for each time it is asked for.
TEST(Rollout, UpdatesAndScoresAreCounted) {
  Scenario scenario = learning();
  scenario.train.global_batch = 8;
  const Metrics once = figures_of(scenario);
  EXPECT_EQ(once.update_steps, std::ceil(64.0 * 600 / (8 * 2048)));
  scenario.train.rollout.epochs = 2;
  EXPECT_EQ(figures_of(scenario).update_steps, std::ceil(2 * 64.0 * 600 / (8 * 2048)));
  EXPECT_EQ(figures_of(scenario).rollout_time, once.rollout_time);
  scenario.train.rollout.scoring_passes = 3;
  EXPECT_NEAR(figures_of(scenario).scoring_time / once.scoring_time, 3, 1e-12);
  scenario.train.rollout.scoring_passes = 0;
  EXPECT_EQ(figures_of(scenario).scoring_time.value, 0);
}

// A last batch that is not full takes its share of a step; arithmetic on tokens that nobody made is not counted.
TEST(Rollout, TokensAreTrainedOnOnceWhateverTheBatch) {
  const auto work = [](std::int64_t batch) {
    Scenario scenario = learning();
    scenario.train.global_batch = batch;
    const Metrics figures = figures_of(scenario);
    return figures.model_flops_utilization * figures.iteration_time.value;
  };
  EXPECT_NEAR(work(16) / work(8), 1, 1e-9);
  // 64 x 600 tokens are 18.75 sequences: more of the update in the smaller batch is optimizer, nothing else.
  Scenario large = learning(), small = learning();
  large.train.global_batch = 16, small.train.global_batch = 8;
  EXPECT_LE(figures_of(large).update_time.value, figures_of(small).update_time.value * (1 + 1e-9));
}

// Weights stay where both layouts have them, and states where they may stay.
TEST(Rollout, WeightsTravelBetweenLayouts) {
  Scenario scenario = learning();
  scenario.train.rollout.offload_states = false;
  EXPECT_EQ(figures_of(scenario).weight_transfer_time.value, 0);
  scenario.parallel = {.tp = 2, .dp = 4};
  const Metrics halves = figures_of(scenario);
  // Half of all weights, over 100 GB/s.
  EXPECT_NEAR(halves.weight_transfer_time.value, halves.parameters * 2 / 2 / 100e9, 1e-3);
  scenario.train.rollout.offload_states = true;
  const Metrics moved = figures_of(scenario);
  // The other half and its states to the host and back, and half of a reference from there, over 20 GB/s.
  EXPECT_NEAR((moved.weight_transfer_time - halves.weight_transfer_time).value,
              moved.parameters * (2 * (2 + 12) + 2) / 2 / 20e9, 1e-3);
}

// Devices that hold some experts whole have of each expert's part what they hold of all experts: an eighth of an eighth. Dense
// weights that all of them have whole stay.
TEST(Rollout, ExpertsTravelBetweenLayouts) {
  Scenario scenario = learning();
  scenario.model = scenario.rollout.deployment.model = toys::mixture();
  scenario.train.rollout.offload_states = false;
  scenario.parallel.ep = 8;
  scenario.rollout.deployment.parallel.tp = 8;
  const Metrics moved = figures_of(scenario);
  const double experts = parameter_counts(scenario.model).experts;
  EXPECT_NEAR(moved.weight_transfer_time.value, experts * 2 / 8 * 7 / 8 / 100e9, 1e-4);
  scenario.rollout.deployment.parallel = {.dp = 8, .ep = 8};
  EXPECT_EQ(figures_of(scenario).weight_transfer_time.value, 0);
}

// Weights that samples are made with are those that are trained, where both layouts are the same: only states leave.
TEST(Rollout, EqualLayoutsShareTheirWeights) {
  Scenario scenario = learning();
  scenario.train.rollout.scoring_passes = 0;
  const Metrics shared = figures_of(scenario);
  EXPECT_NEAR(shared.weight_transfer_time.value, 2 * shared.parameters * 12 / 20e9, 1e-3);
  scenario.rollout.deployment.quant.weights = Dtype::fp8;  // another copy
  const Metrics apart = figures_of(scenario);
  EXPECT_NEAR(apart.weight_transfer_time.value, 2 * apart.parameters * (12 + 2) / 20e9, 1e-3);
}

// States that stay take their room, and no more: gradients are of no use meanwhile, equal layouts have one copy of the weights, and
// models that only score lie there as well. Fewer seats make answers take longer, so equal times are equal room.
TEST(Rollout, WhatStaysIsWhatIsNeeded) {
  Scenario scenario = learning();
  scenario.train.sequence = 4224;
  scenario.train.rollout.lengths.output = 4000;
  scenario.train.rollout.prompts = 1024;
  const double parameters = figures_of(scenario).parameters;
  const auto time_with = [&](bool offload, double references, double bytes_less) {
    scenario.train.rollout.offload_states = offload;
    scenario.train.rollout.reference_models = references;
    scenario.device.memory_capacity = Bytes{75e9 - bytes_less * parameters};
    scenario.rollout.deployment.device = scenario.device;
    return figures_of(scenario).rollout_time.value;
  };
  for (const double references : {0.0, 1.0, 2.0}) {
    EXPECT_NEAR(time_with(false, references, 0) / time_with(true, 0, 12 + 2 * references), 1, 1e-9);
  }
  EXPECT_GT(time_with(false, 2, 0), time_with(false, 0, 0));
}

// Models that only score take memory beside training where nothing is moved away.
TEST(Rollout, ReferencesLieSomewhere) {
  Scenario scenario = apart();
  scenario.train.rollout.reference_models = 1.5;
  const Metrics there = figures_of(scenario);
  EXPECT_NEAR(there.reference_memory.value / (1.5 * 2 * there.parameters), 1, 1e-6);
  scenario.train.rollout.scoring_passes = 0;
  EXPECT_EQ(figures_of(scenario).peak_memory, there.peak_memory - there.reference_memory);
}

// What leaves the devices lies in the host's memory: models that only score, states of training while samples are made, and activations
// while they are not.
TEST(Rollout, WhatIsAwayIsInTheHostsMemory) {
  Scenario scenario = learning();
  const auto bytes = [&] {
    const Metrics figures = figures_of(scenario);
    return figures.host_memory.value / figures.parameters;
  };
  EXPECT_NEAR(bytes(), 2 + 12, 1e-6);  // equal layouts have one copy of the weights
  scenario.train.rollout.reference_models = 0;
  EXPECT_NEAR(bytes(), 12, 1e-6);
  scenario.train.offload_activations = true;
  EXPECT_NEAR(bytes(), 12, 1e-6);
  scenario.train.offload_optimizer = true;
  EXPECT_GT(bytes(), 12 + 4);
  scenario.train.offload_optimizer = scenario.train.offload_activations = false;
  scenario.train.rollout.offload_states = false;
  EXPECT_TRUE(std::isnan(bytes()));
}

TEST(Rollout, StatesThatStayLeaveLessForTheCache) {
  Scenario scenario = learning();
  scenario.device.memory_capacity = Bytes{48e9};
  scenario.train.sequence = 4224;
  scenario.train.rollout.lengths.output = 4000;
  scenario.train.rollout.prompts = 256;
  scenario.rollout.deployment = scenario;
  scenario.rollout.deployment.parallel.dp = 1;
  const Seconds roomy = figures_of(scenario).rollout_time;
  scenario.train.rollout.offload_states = false;
  EXPECT_GT(figures_of(scenario).rollout_time, roomy);
}

// Rows of training are of a whole iteration; those of samples have a role of their own.
TEST(Rollout, RowsSayWhoDidTheWork) {
  const Outcome outcome = evaluate(learning());
  Seconds trained, sampled;
  for (const KernelRow& row : outcome.kernels) {
    (row.role == DeploymentRole::rollout ? sampled : trained) += row.work.exposed();
  }
  EXPECT_NEAR(trained / outcome.metrics.update_time, 1, 1e-9);
  EXPECT_GT(sampled.value, 0);
  EXPECT_LE(sampled.value, outcome.metrics.rollout_time.value * (1 + 1e-9));
}

TEST(Rollout, WhatCannotBeIsARowWithAReason) {
  const auto reason = [](Scenario scenario, auto change) {
    change(scenario);
    return evaluate(scenario).reason;
  };
  EXPECT_EQ(reason(learning(), [](Scenario& s) { s.train.rollout.asynchronous = true; }),
            "train.rollout.asynchronous needs train.rollout.colocated: false: the same devices "
            "cannot train and make samples at once");
  EXPECT_EQ(reason(learning(), [](Scenario& s) { s.rollout.deployment.model.layers = 3; }),
            "rollout.model differs from model: samples are made by the model that learns");
  EXPECT_EQ(reason(learning(), [](Scenario& s) { s.rollout.deployment.parallel.tp = 3; }),
            "the rollout's layout of 3 devices (tp x pp x dp) does not divide the 8 that train");
  EXPECT_EQ(reason(learning(),
                   [](Scenario& s) {
                     s.model = s.rollout.deployment.model = toys::mixture();
                     s.parallel.ep = s.rollout.deployment.parallel.ep = 8;
                   }),
            "rollout.parallel.ep is training's 8, more than the 1 devices that make samples "
            "together (rollout.parallel.tp x dp); state rollout.parallel.ep");
  EXPECT_EQ(reason(apart(), [](Scenario& s) { s.rollout.present = false; }),
            "train.rollout.colocated is false, and no deployment rollout says where samples are "
            "made");
  EXPECT_EQ(reason(learning(),
                   [](Scenario& s) {
                     s.train.rollout.prompts = s.train.rollout.samples = 1'000'000'000;
                   }),
            "1000000000 x 1000000000 samples (train.rollout.prompts x train.rollout.samples) are "
            "more than a billion");
  EXPECT_EQ(reason(learning(), [](Scenario& s) { s.train.rollout.lengths.output = 200000; }),
            "train.rollout.lengths.prompt + train.rollout.lengths.output (200200) exceeds "
            "model.max_context (131072)");
  EXPECT_EQ(reason(learning(), [](Scenario& s) { s.rollout.deployment.device.name = "other"; }),
            "train.rollout.colocated is true, and rollout.device (other) is not the device that "
            "trains (toy)");
  EXPECT_EQ(reason(learning(), [](Scenario& s) { s.train.rollout.lengths.output = 2000; }),
            "samples of 2200 tokens are longer than train.sequence (2048)");
  EXPECT_EQ(reason(learning(), [](Scenario& s) { s.train.global_batch = 64; }),
            "the 38400 tokens of all samples do not fill a batch of train.global_batch x "
            "train.sequence (131072)");
  EXPECT_EQ(reason(apart(),
                   [](Scenario& s) {
                     s.cluster.nodes = s.rollout.deployment.cluster.nodes = 1;
                     s.cluster.devices_per_node = s.rollout.deployment.cluster.devices_per_node =
                         11;
                   }),
            "8 devices that train and 4 that make samples are more than the 11 of the cluster they "
            "share");
  // What it takes over from training is said by name.
  EXPECT_EQ(
      reason(apart(),
             [](Scenario& s) {
               s.cluster.nodes = s.rollout.deployment.cluster.nodes = 1;
               s.cluster.devices_per_node = s.rollout.deployment.cluster.devices_per_node = 32;
               s.rollout.deployment.parallel.dp = s.parallel.dp;
             }),
      "8 devices that train and 32 that make samples are more than the 32 of the cluster they "
      "share; as in the main deployment unless rollout.parallel states another: "
      "rollout.parallel.dp 8");
  EXPECT_TRUE(reason(apart(), [](Scenario& s) {
                s.rollout.deployment.device.memory_capacity = Bytes{1e9};
              }).starts_with("rollout: the model does not fit"));
}

}  // namespace
}  // namespace engine

// What libraries do that a model does not ask for, each held to its definition: joined adapters, rotations in plain operations,
// sends that are waited for, the device that chance fills most, casts that two products share.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "engine/evaluate.h"
#include "engine/model/expert_places.h"
#include "engine/training/passes/launches.h"
#include "tests/support/toys.h"
#include "tests/support/training_toy.h"

namespace engine {
namespace {

using toys::figures_of;
using toys::training;

Scenario with_adapters(bool joined) {
  Scenario scenario = training();
  scenario.train.method = Method::lora;
  scenario.train.lora_rank = 16;
  scenario.train.joined_adapters = joined;
  return scenario;
}

// Queries, keys and values share an input, gate and up another: who joins their adapters keeps one matrix for each input.
TEST(JoinedAdapters, HaveOneInputMatrixForEachProduct) {
  const double outputs = 6144 + 4096 + 16384 + 4096, inputs = 4096 + 4096 + 4096 + 8192;
  EXPECT_EQ(figures_of(with_adapters(true)).trained_parameters, 10 * 16 * (inputs + outputs));
  const double more = 2 * 4096 + 4096;  // those of keys, values and up
  EXPECT_EQ(figures_of(with_adapters(false)).trained_parameters,
            10 * 16 * (inputs + more + outputs));
}

// They read inputs less often. (Passes over narrow outputs may find them in a cache, which this device does without.)
TEST(JoinedAdapters, AreFaster) {
  for (const Method method : {Method::lora, Method::qlora}) {
    Scenario joined = with_adapters(true), apart = with_adapters(false);
    joined.train.method = apart.train.method = method;
    joined.device.l2_bandwidth = apart.device.l2_bandwidth = joined.device.memory_bandwidth;
    const Metrics one = figures_of(joined), several = figures_of(apart);
    EXPECT_LT(one.forward_time, several.forward_time);
    EXPECT_LT(one.backward_time, several.backward_time);
    EXPECT_LE(one.peak_memory, several.peak_memory);
  }
}

double bytes_of_passes(const Outcome& outcome, Phase phase) {
  double bytes = 0;
  for (const KernelRow& row : outcome.kernels) {
    const bool pass = row.op == OpName::adapter && row.family == Family::residual;
    if (pass && row.phase == phase) bytes += row.work.bytes.value;
  }
  return bytes;
}

// Forward, an adapter's result is scaled (two transfers) and added (three). Backward, its gradient is scaled, and the two
// gradients of its input are added.
TEST(Adapters, PassOverTheirOutputsAndTheGradientsOfTheirInputs) {
  const Outcome outcome = evaluate(with_adapters(true));
  const double outputs = 6144 + 4096 + 16384 + 4096, inputs = 4096 + 4096 + 4096 + 8192;
  const double values = 1024 * 16 * 10.0;  // tokens of a step, in ten layers
  EXPECT_NEAR(bytes_of_passes(outcome, Phase::forward), 2 * values * 5 * outputs, 1);
  EXPECT_NEAR(bytes_of_passes(outcome, Phase::backward), 2 * values * (2 * outputs + 3 * inputs),
              1);
}

std::map<std::string, double> seconds_of(const Scenario& scenario) {
  std::map<std::string, double> seconds;
  for (const KernelRow& row : evaluate(scenario).kernels) {
    seconds[std::string(name_of(row.phase)) + " " + std::string(name_of(row.op))] +=
        row.work.exposed().value;
  }
  return seconds;
}

// Rotations take what they take in plain PyTorch, and nothing else changes.
TEST(PlainRotations, AreThoseOfPyTorchAmongFusedKernels) {
  Scenario scenario = training();
  const auto fused = seconds_of(scenario);
  scenario.train.fused_rotation = false;
  auto mixed = seconds_of(scenario);
  scenario.train.fused = false;
  auto plain = seconds_of(scenario);
  for (const char* row : {"forward rope", "backward rope"}) {
    EXPECT_GT(mixed[row], fused.at(row));
    EXPECT_EQ(mixed[row], plain[row]);
    mixed[row] = fused.at(row);
  }
  EXPECT_EQ(mixed, fused);
  scenario.train.fused_rotation = true;
  EXPECT_EQ(seconds_of(scenario), plain);  // all is plain already
}

Scenario pipeline(Schedule schedule, bool blocking) {
  Scenario scenario = training();
  scenario.parallel.pp = 5;
  scenario.train.global_batch = 20;
  scenario.train.schedule = schedule;
  scenario.train.virtual_stages = schedule == Schedule::interleaved ? 2 : 1;
  scenario.train.blocking_sends = blocking;
  return scenario;
}

TEST(BlockingSends, TakeTheirTimeInEveryPassOfAStage) {
  for (const Schedule schedule : {Schedule::gpipe, Schedule::one_f_one_b}) {
    for (const double bandwidth : {1e9, 10e9, 100e9, 1e15}) {
      Scenario scenario = pipeline(schedule, false);
      scenario.device.scale_up.bandwidth = BytesPerSecond{bandwidth};
      const Metrics beside = figures_of(scenario);
      scenario.train.blocking_sends = true;
      const Metrics waited = figures_of(scenario);
      EXPECT_EQ(waited.forward_time, beside.forward_time);
      EXPECT_EQ(waited.backward_time, beside.backward_time);
      EXPECT_GE(waited.iteration_time, beside.iteration_time);
      // 1,024 tokens of 4,096 values; stages in the middle send 20 micro-batches on, and their gradients back.
      EXPECT_GT(waited.iteration_time.value, 2 * 20 * 1024 * 4096 * 2 / bandwidth);
    }
  }
}

TEST(BlockingSends, AreOfPipelinesWithoutChunksInTurn) {
  for (const Schedule schedule : {Schedule::interleaved, Schedule::zero_bubble}) {
    EXPECT_EQ(figures_of(pipeline(schedule, false)).iteration_time,
              figures_of(pipeline(schedule, true)).iteration_time);
  }
  Scenario one = training();
  const Seconds waited = figures_of(one).iteration_time;
  one.train.blocking_sends = false;
  EXPECT_EQ(figures_of(one).iteration_time, waited);
}

Moe routed_to(std::int64_t devices, double copies) {
  return {.tokens = copies * double(devices) / 2,
          .top_k = 2,
          .experts = 64,
          .local_experts = 64 / devices};
}

// The largest of n standard normal variables is on average 0.564, 1.03, 1.42, 1.77 for 2, 4, 8, 16 of them.
TEST(ChanceOfRouting, FillsOneDeviceMoreThanTheMean) {
  EXPECT_EQ(fullest_device(routed_to(1, 1000), 0), 1);
  constexpr double kLargest[][2] = {{2, 0.564}, {4, 1.029}, {8, 1.424}, {16, 1.766}};
  for (const auto& [devices, largest] : kLargest) {
    const double excess = fullest_device(routed_to(std::int64_t(devices), 10000), 0) - 1;
    EXPECT_NEAR(excess / (largest * std::sqrt((1 - 1 / devices) / 10000)), 1, 0.05) << devices;
  }
  // Never more than all that is sent to all.
  for (const double copies : {0.01, 0.1, 1.0, 10.0}) {
    EXPECT_LE(fullest_device(routed_to(8, copies), 0), 8);
  }
  // Four times as many tokens are twice as even.
  EXPECT_NEAR(
      (fullest_device(routed_to(8, 1000), 0) - 1) / (fullest_device(routed_to(8, 4000), 0) - 1), 2,
      0.02);
}

// It is waited for, but no work of the model.
TEST(ChanceOfRouting, IsTimeAndNoArithmetic) {
  const Moe even{.tokens = 8192, .hidden = 1024, .intermediate = 1024, .top_k = 2, .experts = 8};
  Scenario scenario = training();
  scenario.model = toys::mixture();
  const Metrics alone = figures_of(scenario);
  scenario.parallel = {.dp = 8, .ep = 8};
  scenario.train.global_batch *= 8;
  const Metrics shared = figures_of(scenario);
  EXPECT_GT(fullest_device(even, 0), 1);
  const double flops = shared.model_flops_utilization * shared.iteration_time.value;
  EXPECT_NEAR(flops / (alone.model_flops_utilization * alone.iteration_time.value), 1, 1e-9);
}

Scenario narrow_mixture(ExpertProducts products, std::int64_t group) {
  Scenario scenario = training();
  scenario.model = toys::mixture();
  scenario.quant.weights = scenario.quant.activations = Dtype::fp8;
  scenario.quant.group = group;
  scenario.train.expert_products = products;
  return scenario;
}

double calls_of(const Scenario& scenario, OpName op, Phase phase) {
  double calls = 0;
  for (const KernelRow& row : evaluate(scenario).kernels) {
    if (row.op == op && row.phase == phase) calls += row.work.calls;
  }
  return calls;
}

// What goes into an expert's two products is cast by kernels of its own: four where a tensor has one scale (zeroed, largest value,
// scale, cast), one where blocks have theirs. Gradients are cast once for both products that multiply them.
TEST(ExpertsOneByOne, HaveCastsOfTheirOwn) {
  for (const auto& [group, kernels] : {std::pair<std::int64_t, double>{1 << 20, 4}, {128, 1}}) {
    const Scenario grouped = narrow_mixture(ExpertProducts::grouped, group);
    const Scenario single = narrow_mixture(ExpertProducts::one_by_one, group);
    const double layers = 10, micro_batches = 16, experts = 16;
    const double products = 2 * layers * micro_batches;
    EXPECT_EQ(calls_of(grouped, OpName::quantize_experts, Phase::forward), products * kernels);
    EXPECT_EQ(calls_of(single, OpName::quantize_experts, Phase::forward),
              products * kernels * experts);
    EXPECT_EQ(calls_of(single, OpName::quantize_gradient, Phase::backward) -
                  calls_of(grouped, OpName::quantize_gradient, Phase::backward),
              products * kernels * (experts - 1));
    // As many bytes, in more kernels.
    EXPECT_GT(figures_of(single).forward_time, figures_of(grouped).forward_time);
  }
}

// Plain PyTorch launches a kernel of a backward pass in less of the host's time. It is a kernel all the same, with a gap before it.
TEST(BackwardLaunches, AreFasterAndNoFewer) {
  TrainSettings train;
  train.fused = false;
  OpList norms;
  norms.add(OpName::input_norm, Family::norm, 10, Elementwise{});
  const Launches forward = launches_of(norms, PassWay::forward, train);
  const Launches backward = launches_of(norms, PassWay::inputs, train);
  EXPECT_EQ(forward.kernels, 10 * 2);
  EXPECT_EQ(backward.kernels, 10 * 4);
  EXPECT_EQ(forward.one_by_one, forward.kernels);
  EXPECT_LT(backward.one_by_one, backward.kernels);
  EXPECT_GT(backward.one_by_one, 0.5 * backward.kernels);

  // What the device idles between kernels is theirs by number, whichever way a pass goes.
  Scenario scenario = training();
  scenario.train.fused = false;
  scenario.host.kernel_gap = Seconds{1e-5};
  double idle = 0;
  for (const KernelRow& row : evaluate(scenario).kernels) {
    if (row.phase != Phase::backward || row.op != OpName::gap) continue;
    idle += row.work.exposed().value;
  }
  scenario.train.fused = true;
  double fused = 0;
  for (const KernelRow& row : evaluate(scenario).kernels) {
    if (row.phase == Phase::backward && row.op == OpName::gap) fused += row.work.exposed().value;
  }
  EXPECT_GT(idle, 2 * fused);
}

TEST(ExpertLaunches, AreTwoProductsOfEach) {
  const TrainSettings train;
  OpList experts;
  experts.add(OpName::experts, Family::moe, 1, Moe{.local_experts = 16, .one_by_one = true});
  for (const PassWay way : {PassWay::forward, PassWay::inputs, PassWay::weights}) {
    EXPECT_EQ(launches_of(experts, way, train).kernels, 2 * 16);
  }
}

// Where a library's own code takes the host long enough, steps take as long as that code: twice the cost, twice the time. Layers
// with experts take more of it, and backward passes less.
TEST(LayerCost, BoundsAStepInTheEnd) {
  Scenario dense = training(), mixture = training();
  mixture.model = toys::mixture();
  Seconds before = figures_of(dense).forward_time;
  const auto with = [](Scenario scenario, double seconds) {
    scenario.host.layer_cost = Seconds{seconds};
    return figures_of(scenario);
  };
  for (const double seconds : {1e-6, 1e-4, 1e-2, 1.0}) {
    const Seconds now = with(dense, seconds).forward_time;
    EXPECT_GE(now, before) << seconds;
    before = now;
  }
  const Metrics slow = with(dense, 1), slower = with(dense, 2);
  EXPECT_NEAR(slower.forward_time / slow.forward_time, 2, 1e-6);
  EXPECT_NEAR(slow.forward_time.value, 10 * 16.0, 1e-3);  // layers, micro-batches
  EXPECT_LT(slow.backward_time, slow.forward_time);
  EXPECT_GT(with(mixture, 1).forward_time, 2 * slow.forward_time);
}

// Biases of experts' outputs are no activation: `activations` computes none of them again.
TEST(RecomputedActivations, LeaveBiasesOfOutputs) {
  Scenario scenario = training();
  scenario.model = toys::mixture();
  scenario.train.fused_experts = false;
  scenario.train.recompute = Recompute::activations;
  for (const KernelRow& row : evaluate(scenario).kernels) {
    if (row.phase != Phase::recompute) continue;
    EXPECT_TRUE(row.family == Family::act || row.family == Family::norm) << name_of(row.family);
  }
}

}  // namespace
}  // namespace engine

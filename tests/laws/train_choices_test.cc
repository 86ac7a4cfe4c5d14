// Choices of training libraries, each held to what follows from its definition: how far layers are computed again, what
// experts take beside their products, what the host launches for them, and where stages and replicas lie.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "engine/evaluate.h"
#include "engine/training/passes/launches.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"
#include "tests/support/training_toy.h"

namespace engine {
namespace {

using toys::figures_of;
using toys::training;

Scenario computed_again(Recompute recompute) {
  Scenario scenario = training();
  scenario.train.recompute = recompute;
  return scenario;
}

// What is spared is one product of each group of layers that are computed again together.
TEST(EarlyStop, SparesTheLastProductOfAGroup) {
  Scenario scenario = computed_again(Recompute::full);
  const Seconds whole = figures_of(scenario).recompute_time;
  scenario.train.early_stop = true;
  const Seconds spared = whole - figures_of(scenario).recompute_time;
  EXPECT_GT(spared / whole, 0.1);
  EXPECT_LT(spared / whole, 0.5);
  for (const std::int64_t layers : {2, 4}) {
    scenario.train.recompute_layers = layers;
    EXPECT_NEAR((whole - figures_of(scenario).recompute_time) / spared, 1 / double(layers), 1e-9);
  }
}

TEST(RecomputedActivations, LieBetweenNothingAndLayers) {
  const Metrics none = figures_of(computed_again(Recompute::none));
  const Metrics some = figures_of(computed_again(Recompute::activations));
  const Metrics all = figures_of(computed_again(Recompute::full));
  EXPECT_LT(some.kept_activation_memory, none.kept_activation_memory);
  EXPECT_GT(some.kept_activation_memory, all.kept_activation_memory);
  EXPECT_GT(some.recompute_time.value, 0);
  EXPECT_LT(some.recompute_time, all.recompute_time);
  EXPECT_EQ(some.forward_time, none.forward_time);
  // No product is done again.
  EXPECT_NEAR(some.hardware_flops_utilization / some.model_flops_utilization, 1, 0.01);
}

Scenario mixture_over(std::int64_t devices) {
  Scenario scenario = training();
  scenario.model = toys::mixture();
  scenario.parallel = {.dp = devices, .ep = devices};
  scenario.train.global_batch = 2 * devices;
  return scenario;
}

Scenario one_by_one(std::int64_t devices, double launch) {
  Scenario scenario = mixture_over(devices);
  scenario.train.expert_products = ExpertProducts::one_by_one;
  scenario.host.launch_cost = Seconds{launch};
  return scenario;
}

TEST(ExpertProducts, AreTheHostsConcern) {
  const Metrics grouped = figures_of(mixture_over(1)), single = figures_of(one_by_one(1, 0));
  EXPECT_EQ(grouped.iteration_time, single.iteration_time);
  // The slower the host, the longer it takes; in the end time is launches, so twice the cost takes twice as long.
  Seconds before = single.forward_time;
  for (const double launch : {1e-6, 1e-5, 1e-4, 1e-3, 1e-2}) {
    const Seconds now = figures_of(one_by_one(1, launch)).forward_time;
    EXPECT_GE(now, before) << launch;
    before = now;
  }
  EXPECT_NEAR(figures_of(one_by_one(1, 2e-2)).forward_time / before, 2, 1e-6);
}

// Norms and activations of experts are done again, and no product, whatever their library fuses.
TEST(RecomputedActivations, AreNoProductsOfExperts) {
  for (const bool fused : {true, false}) {
    Scenario scenario = mixture_over(8);
    scenario.train.recompute = Recompute::activations;
    scenario.train.fused_experts = fused;
    const Metrics figures = figures_of(scenario);
    EXPECT_GT(figures.recompute_time.value, 0);
    EXPECT_NEAR(figures.hardware_flops_utilization / figures.model_flops_utilization, 1, 0.01);
  }
}

// The more is computed again, the less is kept; tokens travel to their experts and back once more.
TEST(RecomputedExperts, LieBetweenActivationsAndLayers) {
  Scenario scenario = mixture_over(8);
  scenario.cluster.devices_per_node = 8;
  const auto with = [&](Recompute recompute) {
    scenario.train.recompute = recompute;
    return figures_of(scenario);
  };
  Metrics before = with(Recompute::none);
  const Seconds exchanged = before.expert_exchange_time;
  for (const Recompute more : {Recompute::activations, Recompute::experts,
                               Recompute::experts_and_attention, Recompute::full}) {
    const Metrics now = with(more);
    EXPECT_LT(now.kept_activation_memory, before.kept_activation_memory) << name_of(more);
    EXPECT_GT(now.recompute_time, before.recompute_time) << name_of(more);
    EXPECT_EQ(now.forward_time, before.forward_time) << name_of(more);
    before = now;
  }
  EXPECT_NEAR(with(Recompute::experts).expert_exchange_time / exchanged, 1.5, 1e-9);
}

TEST(RecomputedExperts, NeedExperts) {
  for (const Recompute recompute : {Recompute::experts, Recompute::experts_and_attention}) {
    const Outcome outcome = evaluate(computed_again(recompute));
    EXPECT_EQ(outcome.status, Status::unsupported);
    EXPECT_EQ(outcome.reason, "train.recompute " + std::string(name_of(recompute)) +
                                  ": this model has no experts (model.moe)");
  }
}

// Fewer experts on a device are fewer launches.
TEST(ExpertProducts, MoreDevicesLaunchFewerEach) {
  constexpr double slow = 1e-2;
  EXPECT_GT(figures_of(one_by_one(1, slow)).forward_time,
            figures_of(one_by_one(2, slow)).forward_time);
  Scenario grouped = mixture_over(1);
  grouped.host.launch_cost = Seconds{slow};
  EXPECT_GT(figures_of(one_by_one(1, slow)).forward_time, figures_of(grouped).forward_time);
}

// Passes of their own are rows of their own, forward and backward; nothing else changes.
TEST(UnfusedExperts, AddPassesAndNothingElse) {
  Scenario scenario = mixture_over(4);
  scenario.train.overlap = false;
  const Outcome fused = evaluate(scenario);
  scenario.train.fused_experts = false;
  const Outcome unfused = evaluate(scenario);
  const auto seconds = [](const Outcome& outcome) {
    std::map<std::string, double> by_op;
    for (const KernelRow& row : outcome.kernels) {
      by_op[std::string(name_of(row.op)) + " " + std::string(name_of(row.family))] +=
          row.work.exposed().value;
    }
    return by_op;
  };
  auto with = seconds(unfused), without = seconds(fused);
  const double biases = with["experts residual"] - without["experts residual"];
  const double passes = with["experts act"] + biases;
  EXPECT_GT(with["experts act"], 0);
  EXPECT_GT(biases, 0);
  with.erase("experts act");
  with["experts residual"] = without["experts residual"];
  EXPECT_EQ(with, without);
  EXPECT_NEAR((unfused.metrics.iteration_time - fused.metrics.iteration_time).value, passes, 1e-12);
}

Outcome summed_in(StateFormat gradients, bool fused, std::int64_t zero = 0) {
  Scenario scenario = training();
  scenario.parallel.dp = zero == 0 ? 1 : 2;
  scenario.train.zero = zero;
  scenario.train.gradients = gradients;
  scenario.train.fused_gradients = fused;
  return evaluate(scenario);
}
double bytes_summed(const Outcome& outcome) {
  double bytes = 0;
  for (const KernelRow& row : outcome.kernels) {
    const bool sum = row.op == OpName::gradient_sum && row.phase == Phase::backward;
    if (sum) bytes += row.work.bytes.value;
  }
  return bytes;
}

// A pass over gradients of all weights for each micro-batch, in the format that they are kept in, or as much more as products
// that add to them read and write than those that write 16 bits.
TEST(SummedGradients, AreReadAndWrittenForEveryMicroBatch) {
  const Outcome narrow = summed_in(StateFormat::bf16, false);
  const Outcome wide = summed_in(StateFormat::fp32, false);
  EXPECT_NEAR(bytes_summed(wide) / bytes_summed(narrow), (2.0 + 4 + 4) / (2 + 2 + 2), 1e-9);
  const Outcome fused = summed_in(StateFormat::bf16, true);
  const Outcome fused_wide = summed_in(StateFormat::fp32, true);
  EXPECT_NEAR(bytes_summed(fused_wide) / bytes_summed(fused), (4.0 + 4 - 2) / (2 + 2 - 2), 1e-9);
  EXPECT_LT(bytes_summed(fused_wide), bytes_summed(narrow));
  EXPECT_LT(fused.metrics.backward_time, fused_wide.metrics.backward_time);
  EXPECT_LT(fused_wide.metrics.backward_time, narrow.metrics.backward_time);
  EXPECT_EQ(fused.metrics.forward_time, narrow.metrics.forward_time);
  // Two replicas have half of the micro-batches each. Who shares gradients out adds up what it keeps.
  EXPECT_NEAR(bytes_summed(summed_in(StateFormat::bf16, true, 1)) / bytes_summed(fused), 0.5, 1e-9);
  EXPECT_EQ(bytes_summed(summed_in(StateFormat::bf16, true, 3)), 0);
}

// Who adds to gradients in the product that makes them launches nothing for it.
TEST(SummedGradients, AreNoLaunchesWhereProductsAddThem) {
  OpList sums;
  sums.add(OpName::gradient_sum, Family::residual, 3, Elementwise{});
  TrainSettings train;
  EXPECT_EQ(launches_of(sums, PassWay::weights, train).one_by_one, 0);
  train.fused_gradients = false;
  EXPECT_EQ(launches_of(sums, PassWay::weights, train).one_by_one, 3);
}

// The host's part of passes is a row, a figure and a bound, and rows add up to the step.
TEST(Launches, AreToldWhereTheyBindAStep) {
  Scenario scenario = training();
  const Metrics free = figures_of(scenario);
  EXPECT_EQ(free.host_time.value, 0);
  scenario.host.launch_cost = Seconds{1e-2};
  const Outcome bound = evaluate(scenario);
  ASSERT_EQ(bound.status, Status::ok);
  EXPECT_EQ(bound.bound, Bound::host);
  EXPECT_NEAR((bound.metrics.iteration_time - free.iteration_time) / bound.metrics.host_time, 1,
              1e-9);
  Seconds rows;
  for (const KernelRow& row : bound.kernels) rows += row.work.exposed();
  EXPECT_NEAR(rows / bound.metrics.iteration_time, 1, 1e-9);
}

TEST(TrainedExperts, AreNotCopied) {
  Scenario scenario = mixture_over(1);
  scenario.parallel = {.dp = 32, .ep = 32};
  scenario.train.global_batch = 32;
  EXPECT_EQ(evaluate(scenario).reason,
            "parallel.ep 32 with 0 redundant experts: copies of one of the 16 experts would be "
            "trained apart; ep must divide the experts, without redundant ones");
}

// Favourites of served routers are no matter of training; suite T4.4 has those of its own.
TEST(RoutingSkew, IsTrainingsOwn) {
  Scenario scenario = mixture_over(4);
  const Seconds even = figures_of(scenario).iteration_time;
  scenario.model.moe.skew = 0;
  EXPECT_EQ(figures_of(scenario).iteration_time, even);
}

// The longest list of operations: latent attention, dense layers and a mixture, each product narrow, with an adapter, shared by
// devices that split tokens, and its gradients.
TEST(Adapters, StandBesideEveryProductOfALatentMixture) {
  Scenario scenario = training();
  scenario.model = toys::shipped("models", "deepseek-v3").model;
  scenario.device.memory_capacity = Bytes{1e14};
  scenario.quant.weights = scenario.quant.activations = Dtype::fp8;
  scenario.quant.group = 1 << 20;
  scenario.parallel = {.tp = 4, .dp = 2, .ep = 8, .cp = 2};
  scenario.train.sequence_parallel = scenario.train.tp_overlap = true;
  scenario.train.fused_experts = scenario.train.fused_gradients = scenario.train.fused = false;
  scenario.train.dispatcher = Dispatcher::alltoall;
  for (const Method method : {Method::full, Method::lora, Method::qlora}) {
    for (const Recompute recompute : {Recompute::activations, Recompute::full}) {
      scenario.train.method = method;
      scenario.train.recompute = recompute;
      EXPECT_GT(figures_of(scenario).iteration_time.value, 0);
    }
  }
}

// Nodes of eight over a network ten times slower: who lies next to one another talks faster.
TEST(DeviceOrder, NeighboursTalkFaster) {
  Scenario scenario = training();
  scenario.parallel = {.tp = 2, .pp = 4, .dp = 4};
  scenario.train.overlap = false;
  const Metrics replicas = figures_of(scenario);
  scenario.train.order = DeviceOrder::stages_inside;
  const Metrics stages = figures_of(scenario);
  EXPECT_GT(stages.replica_exposed_time, replicas.replica_exposed_time);
  EXPECT_LT(stages.bubble_time, replicas.bubble_time);
  EXPECT_EQ(stages.forward_time, replicas.forward_time);
  EXPECT_EQ(stages.peak_memory, replicas.peak_memory);
}

TEST(DeviceOrder, MattersNotWithinANode) {
  Scenario scenario = training();
  scenario.parallel = {.pp = 2, .dp = 4};
  const Seconds replicas = figures_of(scenario).iteration_time;
  scenario.train.order = DeviceOrder::stages_inside;
  EXPECT_EQ(figures_of(scenario).iteration_time, replicas);
}

TEST(DeviceOrder, KeepsThoseThatShareExpertsTogether) {
  Scenario scenario = mixture_over(4);
  scenario.parallel.pp = 2;
  scenario.train.order = DeviceOrder::stages_inside;
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.reason_class, ReasonClass::unsupported);
  EXPECT_EQ(outcome.reason,
            "train.order tp_cp_pp_dp puts stages between the replicas that share experts "
            "(parallel.ep above parallel.tp), whose exchange is known among neighbours only");
}

}  // namespace
}  // namespace engine

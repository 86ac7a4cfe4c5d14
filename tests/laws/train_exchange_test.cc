// Mixtures that train: how tokens travel to their experts and back, what hides it, and what narrow formats add.
#include <gtest/gtest.h>

#include <array>

#include "engine/evaluate.h"
#include "engine/training/exchange_windows.h"
#include "tests/support/shipped.h"
#include "tests/support/strategies.h"
#include "tests/support/toys.h"
#include "tests/support/training_toy.h"

namespace engine {
namespace {

using toys::figures_of;

Scenario mixture_over(std::int64_t devices) {
  Scenario scenario = toys::training();
  scenario.model = toys::mixture();
  scenario.parallel = {.dp = devices, .ep = devices};
  scenario.train.global_batch = 8 * devices;
  scenario.train.overlap = false;
  return scenario;
}

// Copies that go by themselves are never fewer than tokens that go once to a device.
TEST(Dispatcher, SingleCopiesNeverTravelFaster) {
  for (const std::int64_t devices : {2, 8, 16}) {
    Scenario scenario = mixture_over(devices);
    const Metrics once = figures_of(scenario);
    scenario.train.dispatcher = Dispatcher::alltoall;
    const Metrics copies = figures_of(scenario);
    EXPECT_GE(copies.expert_exchange_time, once.expert_exchange_time) << devices;
    EXPECT_GT(copies.iteration_time, once.iteration_time) << devices;
  }
}

// In 32 bits tokens, results and the gradients of both take twice their bytes.
TEST(Dispatcher, WideTokensTakeTwiceTheBytesEveryWay) {
  Scenario scenario = mixture_over(8);
  scenario.device.peak.fp32 = FlopsPerSecond{5e14};
  for (const Dispatcher dispatcher : {Dispatcher::deepep, Dispatcher::alltoall}) {
    scenario.train.dispatcher = dispatcher;
    const auto bytes = [&](Dtype format, OpName way, Phase phase) {
      scenario.quant.weights = scenario.quant.activations = format;
      double sum = 0;
      for (const KernelRow& row : evaluate(scenario).kernels) {
        if (row.op == way && row.phase == phase) sum += row.work.bytes.value;
      }
      return sum;
    };
    for (const OpName way : {OpName::expert_dispatch, OpName::expert_combine}) {
      for (const Phase phase : {Phase::forward, Phase::backward}) {
        EXPECT_NEAR(bytes(Dtype::fp32, way, phase) / bytes(Dtype::bf16, way, phase), 2, 1e-9);
      }
    }
  }
}

// A steeper law fills one device more, also past the exponents that tables have: in time as in memory.
TEST(RoutingSkew, GoesOnPastTheTables) {
  const auto routed = [](double skew) {
    Scenario scenario = mixture_over(8);
    scenario.device = toys::shipped("devices", "h200-sxm").device;
    scenario.train.routing_skew = skew;
    const Outcome outcome = evaluate(scenario, toys::transfer_resources());
    EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
    return outcome.metrics;
  };
  Metrics before = routed(0);
  for (const double skew : {0.5, 1.0, 1.2, 1.5, 2.0}) {
    const Metrics now = routed(skew);
    EXPECT_GT(now.compute_time, before.compute_time) << skew;
    EXPECT_GT(now.kept_activation_memory, before.kept_activation_memory) << skew;
    before = now;
  }
}

// Half the bytes there, as many as before on the way back and for gradients: no more than a quarter is saved.
TEST(Dispatcher, NarrowTokensTravelFasterOneWayOfFour) {
  Scenario scenario = mixture_over(16);
  scenario.quant.weights = scenario.quant.activations = Dtype::fp8;
  const Seconds wide = figures_of(scenario).expert_exchange_time;
  scenario.train.narrow_dispatch = true;
  const Seconds narrow = figures_of(scenario).expert_exchange_time;
  EXPECT_LT(narrow, wide);
  EXPECT_GT(narrow / wide, 0.75);
}

TEST(BatchOverlap, HidesWhatAnotherMicroBatchCovers) {
  for (const Dispatcher dispatcher : {Dispatcher::deepep, Dispatcher::alltoall}) {
    Scenario scenario = mixture_over(16);
    scenario.train.dispatcher = dispatcher;
    const Metrics apart = figures_of(scenario);
    scenario.train.batch_overlap = true;
    const Metrics beside = figures_of(scenario);
    EXPECT_LT(beside.expert_exchange_time, apart.expert_exchange_time);
    // What is hidden is what the step is shorter by, and no more than all of it but one micro-batch's of eight.
    EXPECT_NEAR((apart.iteration_time - beside.iteration_time) /
                    (apart.expert_exchange_time - beside.expert_exchange_time),
                1, 1e-9);
    EXPECT_GE(beside.expert_exchange_time / apart.expert_exchange_time, 1.0 / 8);
  }
}

TEST(BatchOverlap, OneMicroBatchHasNothingBesideIt) {
  Scenario scenario = mixture_over(16);
  scenario.train.global_batch = 16;
  const Metrics apart = figures_of(scenario);
  scenario.train.batch_overlap = true;
  EXPECT_NEAR(figures_of(scenario).iteration_time / apart.iteration_time, 1, 1e-12);
}

// Traffic has the block of a layer beside it that it does not wait for, and what one block has to spare is none of another's.
TEST(BatchOverlap, GoesOnBesideOneBlockEach) {
  const Taken none{0, 132};
  const LayerBlocks blocks{
      .attention = Seconds{1}, .attention_back = Seconds{2}, .experts = Seconds{4}};
  const auto exposed = [&](double tokens, double results, double gradients) {
    return exposed_exchange({Seconds{tokens}, Seconds{results}, Seconds{gradients}}, blocks, none)
        .value;
  };
  EXPECT_EQ(exposed(4, 2, 1), 0);
  EXPECT_EQ(exposed(5, 2, 1), 1);
  EXPECT_EQ(exposed(0, 4, 0), 2);
  EXPECT_EQ(exposed(0, 0, 4), 3);
  // Never more than all of it, whatever multiprocessors it takes.
  const Seconds all = exposed_exchange({Seconds{4}, Seconds{2}, Seconds{1}}, blocks, {60, 132});
  EXPECT_GT(all.value, 0);
  EXPECT_LT(all.value, 7);
}

// Neither where hosts bound it, nor where the power limit does.
TEST(BatchOverlap, NeverTakesLonger) {
  for (const char* model : {"qwen3-30b-a3b", "deepseek-v2-lite"}) {
    for (const double launch : {0.0, 3e-6, 1e-5, 3e-5}) {
      for (const std::int64_t micro_batches : {1, 2, 8}) {
        Scenario scenario = toys::step_of(model, "h100-sxm");
        scenario.host.launch_cost = Seconds{launch};
        scenario.parallel = {.dp = 8, .ep = 8};
        scenario.train.global_batch = 8 * micro_batches;
        const auto takes = [&](bool overlap) {
          scenario.train.batch_overlap = overlap;
          return evaluate(scenario, toys::transfer_resources()).metrics.iteration_time.value;
        };
        EXPECT_LE(takes(true), takes(false) * (1 + 1e-9))
            << model << " " << launch << " " << micro_batches;
      }
    }
  }
}

TEST(BatchOverlap, RowsAddUp) {
  Scenario scenario = mixture_over(16);
  scenario.train.batch_overlap = true;
  const Outcome outcome = evaluate(scenario);
  Seconds sum;
  for (const KernelRow& row : outcome.kernels) sum += row.work.exposed();
  EXPECT_NEAR(sum / outcome.metrics.iteration_time, 1, 1e-9);
}

TEST(BatchOverlap, IsOneOfTwoWaysToHideAnExchange) {
  Scenario scenario = mixture_over(16);
  scenario.train.batch_overlap = scenario.train.expert_overlap = true;
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::infeasible);
  EXPECT_EQ(outcome.reason,
            "train.batch_overlap and train.expert_overlap hide the same exchange behind different "
            "work; choose one");
}

// Inputs of both products of an expert are cast, and the gradients of both outputs.
TEST(NarrowExperts, CastWhatTheyMultiply) {
  Scenario scenario = mixture_over(8);
  const Seconds wide = figures_of(scenario).cast_time;
  EXPECT_EQ(wide.value, 0);
  scenario.quant.weights = scenario.quant.activations = Dtype::fp8;
  const Outcome outcome = evaluate(scenario);
  double forward = 0, backward = 0;
  for (const KernelRow& row : outcome.kernels) {
    if (row.op == OpName::quantize_experts) forward += row.work.bytes.value;
    if (row.op == OpName::quantize_gradient) backward += row.work.bytes.value;
  }
  EXPECT_GT(forward, 0);
  EXPECT_GT(
      backward,
      forward);  // gradients of gate and up are twice as wide as what they make, and dense ones come on top
}

// Chunks with other kinds of layers share no kernels' times by mistake: the first one has dense layers besides.
TEST(NarrowExperts, PointsDoNotShowWhoRanBefore) {
  Scratch scratch;
  WorkMeter work;
  for (const std::int64_t pp : {1, 2, 5}) {
    for (const bool overlap : {false, true}) {
      Scenario scenario = mixture_over(8);
      scenario.parallel.pp = pp;
      scenario.model.moe.first_dense_layers = 3;
      scenario.quant.weights = scenario.quant.activations = Dtype::fp8;
      scenario.train.batch_overlap = overlap;
      Outcome after;
      evaluate_into(scenario, {}, after, work, scratch);
      const Outcome alone = evaluate(scenario);
      EXPECT_EQ(after.status, Status::ok) << after.reason;
      EXPECT_EQ(after.metrics.iteration_time, alone.metrics.iteration_time);
      EXPECT_EQ(after.kernels, alone.kernels);
    }
  }
}

}  // namespace
}  // namespace engine

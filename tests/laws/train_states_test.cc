// Weights, gradients and optimizer states of a training step: where they lie, and in which pieces they travel.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "engine/evaluate.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"
#include "tests/support/training_toy.h"

namespace engine {
namespace {

using toys::figures_of;
using toys::training;

Scenario with_host_link(Scenario scenario) {
  scenario.device.host_link.bandwidth = BytesPerSecond{50e9};
  return scenario;
}

Work work_of(const Scenario& scenario, OpName op) {
  Work sum;
  for (const KernelRow& row : evaluate(scenario).kernels) {
    if (row.op == op) sum.add(row.work);
  }
  return sum;
}

// ZeRO-Offload (Ren et al., 2021): the device keeps the gradients of one layer, or of an end, and the host all of them once.
TEST(OffloadedOptimizer, TakesGradientsAlong) {
  Scenario scenario = with_host_link(training());
  scenario.model.layers = 8;
  const Metrics here = figures_of(scenario);
  scenario.train.offload_optimizer = true;
  const Metrics there = figures_of(scenario);
  EXPECT_GE(there.gradient_memory, here.gradient_memory / 16);
  EXPECT_LE(there.gradient_memory, here.gradient_memory / 2);
  EXPECT_NEAR(there.host_memory.value, (12 + 4) * here.parameters, 1e-6 * here.parameters);
}

// Replicas that sum up gradients once a step keep them until then; those that scatter them in each pass, or have one, do not.
TEST(OffloadedOptimizer, WaitsForReplicas) {
  Scenario scenario = with_host_link(training());
  scenario.parallel.dp = 4;
  scenario.train.offload_optimizer = true;
  const auto gradients = [&](std::int64_t zero, std::int64_t micro_batches) {
    scenario.train.zero = zero;
    scenario.train.global_batch = 4 * micro_batches;
    return figures_of(scenario).gradient_memory.value;
  };
  const double all = 4 * figures_of(scenario).parameters;
  EXPECT_NEAR(gradients(1, 8) / all, 1, 1e-6);
  EXPECT_LT(gradients(1, 1), 0.7 * all);
  EXPECT_LT(gradients(2, 8), 0.26 * all);
}

// Every micro-batch sends its gradients, and the host adds those of all but the first to what is there.
TEST(OffloadedOptimizer, SendsGradientsOfEveryMicroBatch) {
  Scenario scenario = with_host_link(training());
  scenario.train.offload_optimizer = true;
  const double gradients = 4 * figures_of(scenario).parameters;
  for (const std::int64_t count : {1, 2, 16}) {
    scenario.train.global_batch = count;
    EXPECT_NEAR(work_of(scenario, OpName::gradient_offload).bytes.value / gradients, double(count),
                1e-6);
    EXPECT_NEAR(work_of(scenario, OpName::gradient_sum).bytes.value / gradients,
                3 * double(count - 1), 1e-6);
  }
}

// Gradients that leave after every pass are added up by the host. Replicas that sum theirs up once a step add to what is on the device
// until then, whether they have other sequences or other parts of them.
TEST(OffloadedOptimizer, AddsUpWhereGradientsAre) {
  Scenario scenario = with_host_link(training());
  scenario.train.offload_optimizer = true;
  const auto added_here = [&](const Parallelism& parallel) {
    scenario.parallel = parallel;
    double bytes = 0;
    for (const KernelRow& row : evaluate(scenario).kernels) {
      const bool sum = row.op == OpName::gradient_sum && row.phase == Phase::backward;
      if (sum) bytes += row.work.bytes.value;
    }
    return bytes;
  };
  EXPECT_EQ(added_here({}), 0);
  EXPECT_GT(added_here({.dp = 2}), 0);
  EXPECT_GT(added_here({.cp = 2}), 0);
}

TEST(OffloadedOptimizer, NeverTakesMoreOfTheDevice) {
  for (std::int64_t zero = 0; zero <= 3; ++zero) {
    for (const std::int64_t replicas : {1, 2, 16}) {
      Scenario scenario = with_host_link(training());
      scenario.parallel.dp = replicas;
      scenario.train.zero = zero;
      const Bytes here = figures_of(scenario).peak_memory;
      scenario.train.offload_optimizer = true;
      EXPECT_LT(figures_of(scenario).peak_memory, here) << zero << ' ' << replicas;
    }
  }
}

// With ZeRO 3 a device holds the weights of the unit at work and of the layer beside it, and the former's gradients. Worked out
// by hand for an output that is far larger than a layer: 2 bytes of weights and 4 of gradients.
TEST(SharedWeights, TheLargestUnitDecides) {
  Scenario scenario = training();
  scenario.parallel.dp = 8;
  scenario.train.zero = 3;
  scenario.model.layers = 8;
  scenario.model.tied_embeddings = false;
  scenario.model.vocabulary = 2'000'000;
  const double matrix = double(scenario.model.vocabulary) * double(scenario.model.hidden);
  const Metrics figures = figures_of(scenario);
  const double layer = (figures.parameters - 2 * matrix) / 8;
  EXPECT_NEAR(figures.gathered_memory.value / (6 * matrix + 2 * layer), 1, 1e-3);
  scenario.model.vocabulary = 256;
  EXPECT_NEAR(figures_of(scenario).gathered_memory.value / (8 * layer), 1, 0.01);
}

// Weights that are shared out are gathered layer by layer: twice a micro-batch, and the ends by themselves.
TEST(SharedWeights, TravelLayerByLayer) {
  for (const std::int64_t layers : {1, 4, 16}) {
    Scenario scenario = training();
    scenario.parallel.dp = 8;
    scenario.train = {.sequence = 1024, .micro_batch = 1, .global_batch = 16, .zero = 3};
    scenario.model.layers = layers;
    scenario.model.tied_embeddings = false;
    EXPECT_NEAR(work_of(scenario, OpName::weight_gather).calls, 2 * 2 * double(layers + 2), 1e-9);
    EXPECT_NEAR(work_of(scenario, OpName::gradient_sum).calls, 2 * double(layers + 2), 1e-9);
  }
}

// Sixteen layers take as long as sixteen of one: nothing is saved by sending them together.
TEST(SharedWeights, TakeAsLongAsTheirLayers) {
  const auto exposed = [](std::int64_t layers) {
    Scenario scenario = training();
    scenario.parallel.dp = 8;
    scenario.train.zero = 3;
    scenario.train.overlap = false;
    scenario.model.layers = layers;
    return figures_of(scenario).replica_exposed_time.value;
  };
  EXPECT_NEAR((exposed(32) - exposed(16)) / (exposed(17) - exposed(1)), 1, 0.02);
}

Scenario narrow_training() {
  Scenario scenario = training();
  scenario.quant.weights = scenario.quant.activations = Dtype::fp8;
  scenario.quant.group = 1 << 20;  // one scale
  return scenario;
}

// Weights are cast once a step where their copies stay, and for each pass of each micro-batch where they are gathered for it: 5
// bytes forward, where they are not turned round, and 8 backward.
TEST(NarrowWeights, AreCastAsOftenAsTheyCome) {
  Scenario scenario = narrow_training();
  scenario.parallel.dp = 4;
  const auto casts = [&](std::int64_t zero, bool reshard, std::int64_t micro_batches) {
    scenario.train.zero = zero;
    scenario.train.reshard = reshard;
    scenario.train.global_batch = 4 * micro_batches;
    double bytes = 0;
    for (const KernelRow& row : evaluate(scenario).kernels) {
      if (row.op == OpName::cast_transpose && row.phase == Phase::forward) {
        bytes += row.work.bytes.value;
      }
    }
    return bytes;
  };
  const double once = casts(1, true, 1);
  EXPECT_GT(once, 0);
  EXPECT_NEAR(casts(1, true, 8) / once, 1, 1e-9);
  EXPECT_NEAR(casts(3, false, 8) / once, 8, 1e-9);
  EXPECT_NEAR(casts(3, true, 8) / once, 8 * 5.0 / 8, 1e-9);
  const auto time = [&](bool reshard) {
    casts(3, reshard, 8);
    return figures_of(scenario).cast_time;
  };
  EXPECT_GT(time(true), time(false));
}

// Copies that stay for a step, as they are and turned round, are two bytes of every weight of a layer, experts included.
TEST(NarrowWeights, StayForAStepInMemory) {
  for (const ModelSpec& model : {toys::scenario().model, toys::mixture()}) {
    Scenario scenario = narrow_training();
    scenario.model = model;
    const auto weights = [&](std::int64_t micro_batches) {
      scenario.train.global_batch = micro_batches;
      return figures_of(scenario).weights.value;
    };
    const double ends = 2 * double(scenario.model.vocabulary) * double(scenario.model.hidden);
    const double in_layers = figures_of(scenario).parameters - ends;
    EXPECT_NEAR((weights(2) - weights(1)) / (2 * in_layers), 1, 0.01);
  }
}

// Without a cache of weights turned round, they are turned in every backward pass and take one byte less; frozen ones likewise.
TEST(NarrowWeights, AreTurnedRoundInEveryPassWithoutACache) {
  for (const Method method : {Method::full, Method::lora}) {
    Scenario scenario = narrow_training();
    scenario.train.method = method;
    const auto of = [&](bool cache, std::int64_t micro_batches) {
      scenario.train.transpose_cache = cache;
      scenario.train.global_batch = micro_batches;
      return figures_of(scenario);
    };
    const auto again = [&](std::int64_t micro_batches) {
      return of(false, micro_batches).cast_time - of(true, micro_batches).cast_time;
    };
    EXPECT_GT(again(4).value, 0);
    EXPECT_NEAR((again(16) - again(8)) / (again(8) - again(4)), 2, 1e-6);
    const double ends = 2 * double(scenario.model.vocabulary) * double(scenario.model.hidden);
    const double in_layers = of(true, 4).parameters - ends;
    EXPECT_NEAR((of(true, 4).weights - of(false, 4).weights).value / in_layers, 1, 0.01);
  }
}

// In 32 bits weights are the optimizer's own, and activations and what devices exchange of them twice as large.
TEST(WideTraining, TakesTwiceTheRoom) {
  Scenario scenario = training();
  scenario.device.peak.fp32 = FlopsPerSecond{5e14};
  scenario.parallel = {.tp = 2, .dp = 2};
  scenario.train.sequence_parallel = true;
  const auto bytes = [&](OpName op) { return work_of(scenario, op).bytes.value; };
  const Metrics narrow = figures_of(scenario);
  const double exchanged = bytes(OpName::mlp_reduce);
  scenario.quant.weights = scenario.quant.activations = Dtype::fp32;
  const Metrics wide = figures_of(scenario);
  EXPECT_NEAR(wide.weights / narrow.weights, 2, 1e-9);
  EXPECT_NEAR(wide.optimizer_memory / narrow.optimizer_memory, 8.0 / 12, 1e-9);
  EXPECT_EQ(wide.gradient_memory, narrow.gradient_memory);
  EXPECT_NEAR(wide.kept_activation_memory / narrow.kept_activation_memory, 2, 0.02);
  EXPECT_NEAR(bytes(OpName::mlp_reduce) / exchanged, 2, 1e-9);
  EXPECT_GT(wide.tensor_exchange_time, narrow.tensor_exchange_time);
}

// Weights that are narrower than what they are multiplied with are frozen ones.
TEST(NarrowWeights, AloneAreNotTrained) {
  for (const Dtype weights : {Dtype::fp4, Dtype::int4, Dtype::fp8}) {
    Scenario scenario = training();
    scenario.quant.weights = weights;
    EXPECT_EQ(evaluate(scenario).status, Status::unsupported);
    scenario.train.method = Method::qlora;
    EXPECT_EQ(evaluate(scenario).status, Status::ok);
  }
}

// PEFT keeps adapters in 32 bits, as the optimizer does: 4 bytes of weight, 4 of gradient and two moments, for each device that
// has them whole. Replicas that share the optimizer's copy out have one in 16 bits beside it.
TEST(Adapters, AreKeptOnce) {
  for (const Method method : {Method::lora, Method::qlora}) {
    Scenario scenario = training();
    scenario.train.method = method;
    const auto bytes_of_rank = [&](std::int64_t rank) {
      scenario.train.lora_rank = rank;
      const Metrics figures = figures_of(scenario);
      return figures.weights + figures.gradient_memory + figures.optimizer_memory;
    };
    const auto weights_of_rank = [&](std::int64_t rank) {
      scenario.train.lora_rank = rank;
      return figures_of(scenario).trained_parameters;
    };
    const auto of_each = [&] {
      return (bytes_of_rank(64) - bytes_of_rank(32)).value /
             (weights_of_rank(64) - weights_of_rank(32));
    };
    EXPECT_NEAR(of_each(), 4 + 4 + 8, 1e-6);
    scenario.train.gradients = StateFormat::bf16;
    scenario.train.master_weights = StateFormat::none;
    EXPECT_NEAR(of_each(), 2 + 2 + 8, 1e-6);
    scenario.train.gradients = scenario.train.master_weights = StateFormat::fp32;
    scenario.train.zero = 1;
    scenario.parallel.dp = 4;
    EXPECT_NEAR(of_each(), 2 + 4 + 12.0 / 4, 1e-6);
  }
}

// The first headline of QLoRA (Dettmers et al., 2023): 33B on 24 GB and 65B on 48 GB, whose adapters are in 16 bits.
TEST(Adapters, OfQloraFitWithItsSettings) {
  struct Run {
    const char *model, *device;
  };
  for (const Run& run : {Run{"llama-33b", "rtx-3090"}, Run{"llama-33b", "rtx-4090"},
                         Run{"llama-65b", "l40s"}, Run{"llama-65b", "rtx-a6000"}}) {
    Scenario scenario = toys::shipped("models", run.model);
    scenario.device = toys::shipped("devices", run.device).device;
    scenario.task = Task::train;
    scenario.train.method = Method::qlora;
    scenario.train.lora_rank = 64;
    scenario.train.global_batch = 16;
    scenario.train.sequence = 512;
    scenario.train.recompute = Recompute::full;
    const Outcome wide = evaluate(scenario);
    if (wide.status != Status::ok) {
      EXPECT_NE(wide.reason.find("; with adapters in 16 bits they fit (train.gradients: bf16 and "
                                 "train.master_weights: none)"),
                std::string::npos)
          << wide.reason;
    }
    scenario.train.gradients = StateFormat::bf16;
    scenario.train.master_weights = StateFormat::none;
    EXPECT_EQ(evaluate(scenario).status, Status::ok) << run.model << " on " << run.device;
  }
}

// Gradients that are summed once a step travel in buckets, a layer or forty million weights each; together where nothing goes on
// beside them.
TEST(GradientBuckets, AreThereForOverlap) {
  Scenario scenario = training();
  scenario.parallel.dp = 8;
  scenario.train.global_batch = 8;  // nothing is added up before
  const auto calls = [&] { return work_of(scenario, OpName::gradient_sum).calls; };
  const double weights = figures_of(scenario).parameters;
  EXPECT_NEAR(calls(), std::clamp(weights / 40e6, 1.0, double(scenario.model.layers + 2)), 1e-6);
  scenario.train.overlap = false;
  EXPECT_EQ(calls(), 1);
}

}  // namespace
}  // namespace engine

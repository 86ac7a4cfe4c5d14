// What number formats of training take in memory, on links and in passes beside products: each held to what a format is.
#include <gtest/gtest.h>

#include "engine/evaluate.h"
#include "engine/scratch.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"
#include "tests/support/training_toy.h"

namespace engine {
namespace {

using toys::figures_of;
using toys::training;

constexpr std::int64_t kOneScale = 1 << 20, kBlocks = 128, kMicroscaled = 32, kNvfp4 = 16;

Scenario narrow(std::int64_t group, Dtype format = Dtype::fp8) {
  Scenario scenario = training();
  scenario.device.peak.fp4 = FlopsPerSecond{4e15};
  scenario.quant.weights = scenario.quant.activations = format;
  scenario.quant.group = group;
  return scenario;
}

Scenario on(const char* architecture, Scenario scenario) {
  scenario.device.architecture = architecture;
  return scenario;
}

double bytes_of_op(const Scenario& scenario, OpName name, Phase phase) {
  double bytes = 0;
  for (const KernelRow& row : evaluate(scenario).kernels) {
    if (row.op == name && row.phase == phase) bytes += row.work.bytes.value;
  }
  return bytes;
}
double turned(const Scenario& scenario) {
  return bytes_of_op(scenario, OpName::cast_transpose, Phase::backward);
}

// Weights of the layers' products, and nothing else.
double in_layers(const Scenario& scenario) {
  const ModelSpec& model = scenario.model;
  return figures_of(scenario).parameters - 2 * double(model.vocabulary) * double(model.hidden);
}

// With one scale a value is the same in either layout: units that take both need nothing turned round. Blocks are cast for both
// sides at once, which writes one byte more for each value.
TEST(TurnedOperands, FollowFromUnitsAndScales) {
  const double apart = turned(on("Hopper", narrow(kOneScale)));
  EXPECT_GT(apart, 0);
  EXPECT_EQ(turned(on("Blackwell", narrow(kOneScale))), 0);
  for (const char* architecture : {"Hopper", "Blackwell"}) {
    EXPECT_NEAR(turned(on(architecture, narrow(kBlocks))) / apart, 1 / 3.0, 1e-9) << architecture;
  }
  // Copies of weights that stay for a step: one byte each where nothing is turned round, else two.
  const auto copies = [](const Scenario& scenario) {
    Scenario alone = scenario;
    alone.train.global_batch = alone.train.micro_batch;  // nothing stays
    return (figures_of(scenario).weights - figures_of(alone).weights).value / in_layers(scenario);
  };
  EXPECT_NEAR(copies(on("Hopper", narrow(kOneScale))), 2, 0.02);
  EXPECT_NEAR(copies(on("Blackwell", narrow(kOneScale))), 1, 0.01);
  EXPECT_NEAR(copies(on("Blackwell", narrow(kBlocks))), 2, 0.02);
}

// NVFP4 has a scale of the tensor beside those of its blocks, and a pass before each cast that finds it; MXFP4 has none.
TEST(TensorScales, AreFoundBeforeTheCast) {
  const auto found = [](std::int64_t group) {
    double calls = 0;
    for (const KernelRow& row : evaluate(narrow(group, Dtype::fp4)).kernels) {
      if (row.op == OpName::quantize_gradient && row.family == Family::residual) {
        calls += row.work.calls;
      }
    }
    return calls;
  };
  EXPECT_GT(found(kNvfp4), 0);
  EXPECT_EQ(found(32), 0);
}

// Formats that matrix units lack are refused, by what the point says of them.
TEST(Formats, NeedTheirUnits) {
  const auto asked = [](const char* device, Dtype format, std::int64_t group) {
    Scenario scenario = narrow(group, format);
    scenario.device = toys::shipped("devices", device).device;
    scenario.device.memory_capacity = Bytes{1e12};
    return evaluate(scenario);
  };
  for (const char* device : {"h100-sxm", "h200-sxm", "mi300x"}) {
    EXPECT_EQ(asked(device, Dtype::fp8, kBlocks).status, Status::ok) << device;
    const Outcome refused = asked(device, Dtype::fp8, kMicroscaled);
    EXPECT_EQ(refused.status, Status::infeasible) << device;
    EXPECT_EQ(refused.reason,
              "fp8 with a scale for 32 values (quant.group; MXFP8) needs matrix units that scale "
              "blocks, which came with fp4 (device.peak.fp4 is 0); quant.group: 128 scales square "
              "blocks, 1048576 a tensor");
    EXPECT_EQ(asked(device, Dtype::fp4, kNvfp4).status, Status::infeasible) << device;
  }
  for (const char* device : {"b200-sxm", "gb300", "mi355x"}) {
    EXPECT_EQ(asked(device, Dtype::fp8, kMicroscaled).status, Status::ok) << device;
    EXPECT_EQ(asked(device, Dtype::fp4, kNvfp4).status, Status::ok) << device;
  }
}

// Units that scale a few values at a time multiply them as fast as others of the format.
TEST(Formats, MicroscaledProductsTakeAsLongAsThoseOfOneScale) {
  for (const char* device : {"b200-sxm", "mi355x"}) {
    const auto products = [&](std::int64_t group) {
      Scenario scenario = narrow(group);
      scenario.device = toys::shipped("devices", device).device;
      const Outcome outcome = evaluate(scenario, toys::transfer_resources());
      double seconds = 0;
      for (const KernelRow& row : outcome.kernels) {
        if (row.family == Family::gemm) seconds += row.work.time.value;
      }
      return seconds;
    };
    EXPECT_NEAR(products(kMicroscaled) / products(kOneScale), 1, 0.05) << device;
  }
}

Scenario kept_narrow_by(std::int64_t replicas, std::int64_t zero, std::int64_t group) {
  Scenario scenario = narrow(group);
  scenario.parallel.dp = replicas;
  scenario.train.zero = zero;
  scenario.train.global_batch = 16 * replicas;
  scenario.train.narrow_parameters = true;
  return scenario;
}
Scenario kept_wide(Scenario scenario) {
  scenario.train.narrow_parameters = false;
  return scenario;
}

// Parameters that are kept narrow have no copy in 16 bits, whatever their scales.
TEST(NarrowParameters, HaveNoCopyIn16Bits) {
  for (const std::int64_t zero : {0, 1, 2}) {
    for (const std::int64_t group : {kOneScale, kBlocks, kMicroscaled}) {
      const Scenario scenario = kept_narrow_by(4, zero, group);
      const Bytes spared = figures_of(kept_wide(scenario)).weights - figures_of(scenario).weights;
      EXPECT_NEAR(spared.value / (2 * in_layers(scenario)), 1, 0.01) << zero << " " << group;
    }
  }
}

// They travel as they are kept, in half the bytes; those with a scale for a few values of a row are cast where they arrive.
TEST(NarrowParameters, TravelNarrowWhereOneCopyIsEnough) {
  for (const std::int64_t zero : {1, 3}) {
    for (const std::int64_t group : {kOneScale, kBlocks, kMicroscaled}) {
      const Scenario scenario = kept_narrow_by(4, zero, group);
      const auto gathered = [](const Scenario& of) {
        return bytes_of_op(of, OpName::weight_gather, Phase::gradients);
      };
      const double all = figures_of(scenario).parameters;
      const double share = group == kMicroscaled ? 1 : 1 - in_layers(scenario) / all / 2;
      EXPECT_NEAR(gathered(scenario) / gathered(kept_wide(scenario)), share, 0.01)
          << zero << " " << group;
    }
  }
}

// What a thread keeps from point to point changes no figure, also where points cast different numbers of bytes, or sum up gradients of
// some weights only.
TEST(NarrowWeights, DoNotRememberOtherPoints) {
  Scratch scratch;
  for (const ModelSpec& model : {toys::model(), toys::mixture()}) {
    for (const bool narrow_parameters : {false, true}) {
      for (const std::int64_t replicas : {4, 8}) {
        for (const std::int64_t zero : {1, 3, 2, 0, 3}) {
          Scenario scenario = narrow(kOneScale);
          scenario.model = model;
          scenario.parallel = {.dp = replicas, .ep = model.is_moe() ? replicas : 1};
          scenario.train.zero = zero;
          scenario.train.global_batch = 4 * replicas;
          scenario.train.narrow_parameters = narrow_parameters;
          Outcome after;
          WorkMeter work;
          evaluate_into(scenario, {}, after, work, scratch);
          const Metrics alone = figures_of(scenario);
          EXPECT_EQ(after.metrics.iteration_time, alone.iteration_time) << model.name << zero;
          EXPECT_EQ(after.metrics.cast_time, alone.cast_time) << model.name << zero;
        }
      }
    }
  }
}

// With ZeRO 3 the optimizer's copy is all that a replica keeps; what it gathers takes half the room, and is not cast again.
TEST(NarrowParameters, OfReplicasThatShareThemOut) {
  const Scenario scenario = kept_narrow_by(4, 3, kOneScale);
  const Metrics kept = figures_of(scenario), wide = figures_of(kept_wide(scenario));
  EXPECT_NEAR(kept.weights / wide.weights, 1, 1e-9);
  EXPECT_LT(kept.gathered_memory, wide.gathered_memory);
  EXPECT_LT(kept.cast_time, wide.cast_time);
  EXPECT_LE(kept.iteration_time, wide.iteration_time);
}

// Weights that are trained are kept in 16 bits at least, whatever is stated, and products take both sides in the format of activations.
// So how wide weights are stated changes nothing.
TEST(TrainedWeights, AreMultipliedInTheFormatOfActivations) {
  for (const ModelSpec& model : {toys::model(), toys::mixture()}) {
    for (const std::int64_t zero : {1, 3}) {
      for (const Dtype activations : {Dtype::bf16, Dtype::fp8}) {
        Scenario scenario = narrow(kMicroscaled, activations);
        scenario.device.peak.fp32 = FlopsPerSecond{5e14};
        scenario.model = model;
        scenario.parallel = {.tp = 2, .dp = 2};
        scenario.train.zero = zero;
        const Metrics alike = figures_of(scenario);
        for (const Dtype weights : {Dtype::bf16, Dtype::fp32}) {
          scenario.quant.weights = weights;
          const Metrics wider = figures_of(scenario);
          EXPECT_EQ(wider.iteration_time, alike.iteration_time) << model.name << name_of(weights);
          EXPECT_EQ(wider.model_flops_utilization, alike.model_flops_utilization);
          EXPECT_EQ(wider.peak_memory, alike.peak_memory);
        }
      }
    }
  }
}

// Nor can they be trained where nothing multiplies that format.
TEST(TrainedWeights, NeedTheArithmeticOfActivations) {
  Scenario scenario = training();
  scenario.device.peak.fp8 = FlopsPerSecond{0};
  scenario.quant.activations = Dtype::fp8;
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::infeasible);
  EXPECT_EQ(outcome.reason,
            "the device has no fp8 matrix arithmetic (device.peak.fp8 is 0); quant.activations: "
            "bf16 runs these weights");
}

// Frozen weights in 16 bits have two narrow copies beside them, and are cast once and for all; those that replicas share out are cast
// whenever they come.
TEST(FrozenWeights, AreMultipliedInTheFormatOfActivations) {
  const auto figures = [](std::int64_t zero, Dtype weights, Dtype activations) {
    Scenario scenario = on("Hopper", training());
    scenario.quant = {.weights = weights, .activations = activations, .group = kOneScale};
    scenario.parallel.dp = 8;
    scenario.train.method = Method::lora;
    scenario.train.zero = zero;
    return figures_of(scenario);
  };
  const double layers = in_layers(training());
  const Metrics wide = figures(1, Dtype::bf16, Dtype::bf16);
  const Metrics cast = figures(1, Dtype::bf16, Dtype::fp8);
  const Metrics narrow = figures(1, Dtype::fp8, Dtype::fp8);
  EXPECT_EQ(cast.iteration_time, narrow.iteration_time);
  EXPECT_LT(cast.iteration_time, wide.iteration_time);
  EXPECT_NEAR((cast.weights - wide.weights).value / layers, 2, 0.01);
  EXPECT_GT(figures(3, Dtype::bf16, Dtype::fp8).cast_time,
            figures(3, Dtype::fp8, Dtype::fp8).cast_time);
}

// Activations in 32 bits are known beside weights in 32 bits only.
TEST(FrozenWeights, StandBesideActivationsOfAtMost16Bits) {
  Scenario scenario = training();
  scenario.device.peak.fp32 = FlopsPerSecond{5e14};
  scenario.train.method = Method::lora;
  scenario.quant.activations = Dtype::fp32;
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::unsupported);
  EXPECT_EQ(outcome.reason,
            "quant.activations fp32 beside frozen weights in bf16: activations in 32 bits are "
            "modelled beside weights in 32 bits only; state quant.activations: bf16");
  scenario.quant.weights = Dtype::fp32;
  EXPECT_EQ(evaluate(scenario).status, Status::ok);
}

// Frozen weights beside adapters take the bytes of their own format, and a copy turned round where products are narrow, too; those in
// four bits are expanded in every pass, and have none.
TEST(FrozenWeights, TakeTheBytesOfTheirFormat) {
  const auto bytes = [](Method method, Dtype weights, Dtype activations) {
    Scenario scenario = training();
    scenario.train.method = method;
    scenario.quant = {.weights = weights, .activations = activations, .group = kOneScale};
    return figures_of(scenario).weights.value;
  };
  const double layers = in_layers(training());
  const double wide = bytes(Method::lora, Dtype::bf16, Dtype::bf16);
  EXPECT_NEAR((wide - bytes(Method::lora, Dtype::fp8, Dtype::bf16)) / layers, 1, 0.01);
  EXPECT_NEAR((wide - bytes(Method::lora, Dtype::int4, Dtype::bf16)) / layers, 1.5, 0.01);
  EXPECT_NEAR((wide - bytes(Method::lora, Dtype::fp8, Dtype::fp8)) / layers, 0, 0.01);
  EXPECT_NEAR(
      bytes(Method::qlora, Dtype::fp8, Dtype::fp8) / bytes(Method::qlora, Dtype::bf16, Dtype::bf16),
      1, 1e-9);
}

// Replicas that share frozen weights out keep their share, and turn round what they gathered.
TEST(FrozenWeights, ThatAreSharedOutHaveNoWholeCopy) {
  const auto figures = [](std::int64_t zero, Dtype format) {
    Scenario scenario = on("Hopper", training());
    scenario.quant = {.weights = format, .activations = format, .group = kOneScale};
    scenario.parallel.dp = 8;
    scenario.train.method = Method::lora;
    scenario.train.zero = zero;
    return figures_of(scenario);
  };
  const Metrics whole = figures(1, Dtype::fp8), shared = figures(3, Dtype::fp8);
  const double layers = in_layers(training());
  EXPECT_GT(whole.weights.value, 2 * layers);
  EXPECT_LT(shared.weights.value, 0.5 * layers);
  EXPECT_LT(shared.weights, figures(3, Dtype::bf16).weights);
  EXPECT_GT(shared.cast_time, whole.cast_time);
}

// Layers before the first trained one are multiplied one way only: their narrow weights are not turned round.
TEST(LastLayers, FrozenOnesHaveOneCopy) {
  Scenario scenario = on("Hopper", narrow(kOneScale));
  scenario.train.method = Method::last_layers;
  const auto figures = [&](std::int64_t trained) {
    scenario.train.trained_layers = trained;
    return figures_of(scenario);
  };
  const double layer = in_layers(scenario) / double(scenario.model.layers);
  EXPECT_NEAR((figures(3).weights - figures(2).weights).value / layer, 1, 0.01);
  EXPECT_GT(figures(3).cast_time, figures(2).cast_time);
}

// What attention gave is kept by the product that follows, as it multiplies it; attention itself keeps none where it is done again.
TEST(RecomputedAttention, KeepsWhatTheNextProductNeeds) {
  const auto kept = [](Scenario scenario, Recompute recompute) {
    scenario.train.recompute = recompute;
    return figures_of(scenario).kept_activation_memory.value;
  };
  const auto spared = [&](const Scenario& scenario) {
    return kept(scenario, Recompute::none) - kept(scenario, Recompute::attention);
  };
  const ModelSpec model = training().model;
  const double tokens = 1024 * double(model.layers);
  const double statistics = 4 * double(model.heads);
  const double output = 2 * double(model.heads * model.head_dim);
  EXPECT_NEAR(spared(training()) / (tokens * statistics), 1, 1e-9);
  EXPECT_NEAR(spared(narrow(kBlocks)) / (tokens * (statistics + output)), 1, 1e-9);
}

// Queries, keys and values of latent attention come from two thin products, which are done again; without latents nothing is
// expanded.
TEST(UpProjections, AreDoneAgainInsteadOfKept) {
  Scenario scenario = training();
  scenario.model = toys::latent();
  const auto with = [&](Recompute recompute) {
    scenario.train.recompute = recompute;
    return figures_of(scenario);
  };
  const Metrics norms = with(Recompute::activations), all = with(Recompute::up_projections);
  const MlaSpec& mla = scenario.model.mla;
  const double head = double(mla.nope_dim + mla.rope_dim);
  const double values = double(scenario.model.heads) * (2 * head + double(mla.value_dim));
  const double tokens = 1024 * double(scenario.model.layers);
  EXPECT_NEAR(
      (norms.kept_activation_memory - all.kept_activation_memory).value / (2 * tokens * values), 1,
      1e-9);
  EXPECT_GT(all.recompute_time, norms.recompute_time);
  EXPECT_LT(all.recompute_time, with(Recompute::full).recompute_time);
  Scenario plain = training();
  plain.train.recompute = Recompute::up_projections;
  EXPECT_EQ(evaluate(plain).status, Status::unsupported);
}

}  // namespace
}  // namespace engine

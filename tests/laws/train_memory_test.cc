// What lies in a device's memory while it trains, and what becomes of it by what a library keeps, computes again, moves away or frees.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/evaluate.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"
#include "tests/support/training_toy.h"

namespace engine {
namespace {

using toys::figures_of;
using toys::training;

double kept(const Scenario& scenario) { return figures_of(scenario).kept_activation_memory.value; }
double peak(const Scenario& scenario) { return figures_of(scenario).peak_memory.value; }

// One micro-batch of one sequence, on one device.
Scenario one_pass(std::int64_t sequence = 1024) {
  Scenario scenario = training();
  scenario.train.sequence = scenario.model.max_context = sequence;
  scenario.train.global_batch = 1;
  return scenario;
}

// A gate has two inputs; each takes one byte in place of two. Casts there and back are passes over three bytes of each.
TEST(NarrowInputs, TakeAByteAndTwoPasses) {
  Scenario scenario = one_pass();
  const Metrics wide = figures_of(scenario);
  scenario.train.narrow_activation_inputs = true;
  const Metrics narrow = figures_of(scenario);
  const ModelSpec& model = scenario.model;
  const double inputs = 1024.0 * double(model.layers) * 2 * double(model.intermediate);
  EXPECT_NEAR((wide.kept_activation_memory - narrow.kept_activation_memory).value / inputs, 1,
              1e-9);
  const double casts = 2 * 3 * inputs / scenario.device.memory_bandwidth.value;
  const double longer = (narrow.iteration_time - wide.iteration_time).value;
  EXPECT_GT(longer, 0.9 * casts);
  EXPECT_LT(longer, 2 * casts);
  EXPECT_NEAR((narrow.cast_time - wide.cast_time).value, longer, 1e-9 + 0.01 * longer);
}

// Inputs that are computed again are not kept in any format, but for those of the layer at work.
TEST(NarrowInputs, OfLayersThatAreComputedAgainAreNotKept) {
  Scenario scenario = one_pass();
  scenario.train.recompute = Recompute::full;
  const double wide = kept(scenario);
  scenario.train.narrow_activation_inputs = true;
  EXPECT_LE(kept(scenario), wide);
  EXPECT_GE(kept(scenario), wide - 1024.0 * 2 * double(scenario.model.intermediate));
}

// Of two norms in a layer each stands before a product that keeps what the norm gave.
TEST(NormsFromOutputs, SpareTheirInputs) {
  Scenario scenario = one_pass();
  const double both = kept(scenario);
  scenario.train.norms_from_outputs = true;
  const ModelSpec& model = scenario.model;
  const double inputs = 1024.0 * double(model.layers) * 2 * 2 * double(model.hidden);
  EXPECT_NEAR((both - kept(scenario)) / inputs, 1, 1e-9);
  // In fp8 products keep something else; and where outputs are computed again, that is done from inputs.
  for (const bool narrow : {false, true}) {
    Scenario other = one_pass();
    if (narrow) {
      other.quant.weights = other.quant.activations = Dtype::fp8;
    } else {
      other.train.recompute = Recompute::activations;
    }
    const double without = kept(other);
    other.train.norms_from_outputs = true;
    EXPECT_EQ(kept(other), without) << narrow;
  }
}

// Every layer that is computed again leaves its input only, and takes its time again.
TEST(RecomputeFirst, IsBetweenNoneAndAllLayerByLayer) {
  Scenario scenario = one_pass();
  const Metrics none = figures_of(scenario);
  scenario.train.recompute = Recompute::full;
  const Metrics all = figures_of(scenario);
  const auto layers = double(scenario.model.layers);
  const double spared = (none.kept_activation_memory - all.kept_activation_memory).value;
  // Of all layers one is at work.
  const double at_work = all.kept_activation_memory.value - layers * 1024 * 4096 * 2;
  for (std::int64_t first = 1; first <= scenario.model.layers; ++first) {
    scenario.train.recompute_first = first;
    const Metrics some = figures_of(scenario);
    const double share = double(first) / layers;
    EXPECT_NEAR((none.kept_activation_memory - some.kept_activation_memory).value,
                (spared + at_work) * share - at_work, 1e-6 * spared)
        << first;
    EXPECT_NEAR(some.recompute_time / all.recompute_time, share, 1e-9) << first;
  }
}

// With several chunks on a stage each computes its own first layers again.
TEST(RecomputeFirst, IsOfEachChunk) {
  Scenario scenario = training();
  scenario.model.layers = 32;
  scenario.parallel.pp = 4;
  scenario.train.schedule = Schedule::interleaved;
  scenario.train.virtual_stages = 2;
  scenario.train.recompute = Recompute::full;
  const Seconds all = figures_of(scenario).recompute_time;
  scenario.train.recompute_first = 1;  // of four
  EXPECT_NEAR(figures_of(scenario).recompute_time / all, 0.25, 0.02);
}

// So many layers' activations go to the host; what they take there is in proportion, and so are the copies.
TEST(OffloadLayers, MoveTheirShare) {
  Scenario scenario = one_pass();
  const Metrics here = figures_of(scenario);
  scenario.train.offload_activations = true;
  const Metrics all = figures_of(scenario);
  const double layers = double(scenario.model.layers);
  double before = here.peak_memory.value;
  for (std::int64_t some = 2; some <= scenario.model.layers; some += 2) {
    scenario.train.offload_layers = some;
    const Metrics there = figures_of(scenario);
    EXPECT_NEAR(there.host_memory / all.host_memory, double(some) / layers, 1e-9) << some;
    EXPECT_NEAR((there.offload_exposed_time + there.offload_hidden_time).value /
                    (all.offload_exposed_time + all.offload_hidden_time).value,
                double(some) / layers, 0.01)
        << some;
    EXPECT_LE(there.peak_memory.value, before) << some;
    before = there.peak_memory.value;
  }
  EXPECT_EQ(before, all.peak_memory.value);
}

// Slow links to the host show; fast ones hide behind the work.
TEST(OffloadLayers, HideAsFarAsTheLinkAllows) {
  Scenario scenario = one_pass(4096);
  scenario.train.offload_activations = true;
  scenario.train.offload_layers = 5;
  scenario.device.host_link.bandwidth = BytesPerSecond{1e9};
  const Metrics slow = figures_of(scenario);
  scenario.device.host_link.bandwidth = BytesPerSecond{1e12};
  const Metrics fast = figures_of(scenario);
  EXPECT_GT(slow.offload_exposed_time, slow.offload_hidden_time);
  EXPECT_LT(fast.offload_exposed_time, fast.offload_hidden_time);
  EXPECT_LT(fast.iteration_time, slow.iteration_time);
}

// Where activations take more than gradients, these cost nothing; else activations do not.
TEST(GradientBuffers, RemadeTakeTheLargerOfBoth) {
  for (const std::int64_t sequence : {64, 512, 4096, 16384}) {
    Scenario scenario = one_pass(sequence);
    const Metrics kept = figures_of(scenario);
    scenario.train.gradient_buffers = GradientBuffers::remade;
    const Metrics remade = figures_of(scenario);
    const double spared = (kept.peak_memory - remade.peak_memory).value;
    const double activations = (kept.kept_activation_memory + kept.logit_memory).value;
    EXPECT_GT(spared, 0) << sequence;
    EXPECT_LE(spared, kept.gradient_memory.value * (1 + 1e-9)) << sequence;
    EXPECT_NEAR(spared / std::min(kept.gradient_memory.value, activations), 1, 0.25) << sequence;
    EXPECT_EQ(remade.iteration_time, kept.iteration_time);
  }
}

TEST(GradientBuffers, FreedTakeAUnitAtMost) {
  for (const std::int64_t sequence : {64, 1024, 16384}) {
    Scenario scenario = one_pass(sequence);
    const auto with = [&](GradientBuffers buffers) {
      scenario.train.gradient_buffers = buffers;
      return figures_of(scenario);
    };
    const Metrics all = with(GradientBuffers::kept);
    const double remade = with(GradientBuffers::remade).peak_memory.value;
    const Metrics freed = with(GradientBuffers::freed);
    EXPECT_LE(freed.peak_memory.value, remade) << sequence;
    EXPECT_LT(freed.gradient_memory / all.gradient_memory, 0.25) << sequence;
  }
}

// Gradients of a second micro-batch are added to those of the first, which are there all the time.
TEST(GradientBuffers, OfSeveralMicroBatchesStay) {
  Scenario scenario = one_pass();
  scenario.train.global_batch = 2;
  const double kept = peak(scenario);
  scenario.train.gradient_buffers = GradientBuffers::remade;
  EXPECT_EQ(peak(scenario), kept);
  scenario.train.gradient_buffers = GradientBuffers::freed;
  EXPECT_EQ(evaluate(scenario).reason,
            "train.gradient_buffers freed updates each weight within the one backward pass of a "
            "step; train.global_batch asks for 2 micro-batches (remade adds them up)");
}

// Matrices by themselves take less than the layers that they are of, in more calls.
TEST(GatheredUnits, OfMatricesTakeLess) {
  Scenario scenario = training();
  scenario.parallel.dp = 8;
  scenario.train.zero = 3;
  const auto calls = [&] {
    double sum = 0;
    for (const KernelRow& row : evaluate(scenario).kernels) {
      if (row.op == OpName::weight_gather) sum += row.work.calls;
    }
    return sum;
  };
  const Metrics layers = figures_of(scenario);
  const double calls_of_layers = calls();
  scenario.train.gathered_unit = GatheredUnit::matrix;
  const Metrics matrices = figures_of(scenario);
  const ModelSpec& model = scenario.model;
  // The widest matrix of a layer makes gates. It is there once more for the next one, and with its gradient in 32 bits.
  const double widest = 2 * double(model.hidden * model.intermediate);
  EXPECT_LT(matrices.gathered_memory, layers.gathered_memory);
  EXPECT_GE(matrices.gathered_memory.value, widest * (2 + 2 + 4) * (1 - 1e-9));
  EXPECT_GT(calls(), 3 * calls_of_layers);
}

// Products of the MLP that are wide are done again, and their results not kept; those that are narrow are.
TEST(RecomputedGates, AreBetweenActivationsAndLayers) {
  const auto with = [](Recompute recompute) {
    Scenario scenario = one_pass();
    scenario.train.recompute = recompute;
    return figures_of(scenario);
  };
  const Metrics activations = with(Recompute::activations),
                gates = with(Recompute::attention_and_gates), layers = with(Recompute::full);
  EXPECT_LT(gates.kept_activation_memory, activations.kept_activation_memory);
  EXPECT_GT(gates.recompute_time, activations.recompute_time);
  EXPECT_LT(gates.recompute_time, layers.recompute_time);
}

// Laws of every mechanism: memory falls as more devices share a layer, and grows with a pass.
TEST(TrainingMemory, FallsWithDevicesAndGrowsWithAPass) {
  for (const bool narrow : {false, true}) {
    for (const GradientBuffers buffers : {GradientBuffers::kept, GradientBuffers::remade}) {
      Scenario scenario = one_pass(2048);
      scenario.train.narrow_activation_inputs = narrow;
      scenario.train.gradient_buffers = buffers;
      scenario.train.sequence_parallel = true;
      double before = 1e300;
      for (const std::int64_t tp : {1, 2, 4, 8}) {
        scenario.parallel.tp = tp;
        const double now = peak(scenario);
        EXPECT_LT(now, before) << tp;
        before = now;
      }
      scenario.parallel.tp = 1;
      const double least = peak(scenario);
      before = 0;
      for (const std::int64_t sequences : {1, 2, 4, 8}) {
        scenario.train.micro_batch = scenario.train.global_batch = sequences;
        const double now = peak(scenario);
        EXPECT_GE(now, before) << sequences;
        before = now;
      }
      EXPECT_GT(before, least);
    }
  }
}

// A share of the memory that is stated is all there is; what it leaves free is in the row.
TEST(TrainingMemory, IsAShareWhereOneIsStated) {
  Scenario scenario = one_pass();
  const Metrics all = figures_of(scenario);
  const Bytes capacity = scenario.device.memory_capacity;
  EXPECT_NEAR((all.memory_free + all.peak_memory) / capacity, 1, 1e-12);
  scenario.train.memory_utilization = 1.001 * (all.peak_memory / capacity);
  EXPECT_NEAR(figures_of(scenario).memory_free / (all.peak_memory * 0.001), 1, 1e-6);
  scenario.train.memory_utilization = 0.999 * (all.peak_memory / capacity);
  EXPECT_EQ(evaluate(scenario).reason_class, ReasonClass::memory);
}

TEST(TrainingMemory, RefusesWhatTheModelDoesNotHave) {
  Scenario scenario = one_pass();
  scenario.train.recompute = Recompute::full;
  scenario.train.recompute_first = 11;
  EXPECT_EQ(evaluate(scenario).reason, "train.recompute_first 11 exceed model.layers 10");
  scenario.train.recompute_first = 0;
  scenario.train.offload_activations = true;
  scenario.train.offload_layers = 12;
  EXPECT_EQ(evaluate(scenario).reason, "train.offload_layers 12 exceed model.layers 10");
}

}  // namespace
}  // namespace engine

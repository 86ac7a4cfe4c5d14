// What layers keep for their backward pass follows from their operations, and what runs beside them from who computes what: each held
// to its own definition.
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

// Every norm keeps its input, in 16 bits: those of heads queries and keys, the third and fourth of a layer a stream each. A layer with
// one norm has one stream and one normed input.
TEST(KeptActivations, NormsKeepTheirInputs) {
  const Scenario plain = training();
  const ModelSpec& model = plain.model;
  const double tokens = 1024 * double(model.layers), width = 2 * double(model.hidden);
  const double heads = 2 * double((model.heads + model.kv_heads) * model.head_dim);
  Scenario normed = plain;
  normed.model.qk_norm = true;
  EXPECT_NEAR((kept(normed) - kept(plain)) / (tokens * heads), 1, 1e-9);
  const auto with_norms = [&](std::int64_t norms) {
    Scenario scenario = plain;
    scenario.model.norms_per_layer = norms;
    return kept(scenario);
  };
  EXPECT_NEAR((with_norms(4) - with_norms(2)) / (tokens * 2 * width), 1, 1e-9);
  EXPECT_NEAR((with_norms(2) - with_norms(1)) / (tokens * 2 * width), 1, 1e-9);
}

// A new gradient lies beside the sum that it is added to, whoever would share sums out: one replica shares nothing.
TEST(NewGradients, OfOneReplicaAreWholeWhateverIsSharedOut) {
  Scenario scenario = training();
  scenario.train.fused_gradients = false;
  const Bytes alone = figures_of(scenario).peak_memory;
  for (const std::int64_t zero : {1, 2, 3}) {
    scenario.train.zero = zero;
    EXPECT_EQ(figures_of(scenario).peak_memory, alone) << zero;
  }
}

// Rows of experts that are weighed in their activation are not kept after it; where a library has no such kernel, all copies are.
TEST(KeptActivations, WeighedRowsAreNotKept) {
  Scenario scenario = training();
  scenario.model = toys::mixture();
  const double fused = kept(scenario);
  scenario.train.fused_experts = false;
  const ModelSpec& model = scenario.model;
  const double copies = 1024 * double(model.moe.top_k);
  const std::int64_t mixtures = layer_counts(model).mixture;
  EXPECT_NEAR((kept(scenario) - fused) / (double(mixtures) * copies * 2 * double(model.hidden)), 1,
              1e-6);
}

// Where a pass adds a gradient to its sum, the new one of the widest matrix is there beside it: a layer's turn, when logits are gone.
TEST(KeptActivations, NewGradientsLieBesideTheirSum) {
  Scenario scenario = training();
  scenario.train.sequence = scenario.model.max_context = 64;
  const auto gradients = [&](bool fused, std::int64_t vocabulary) {
    scenario.model.vocabulary = vocabulary;
    scenario.train.fused_gradients = fused;
    const Metrics metrics = figures_of(scenario);
    return metrics.gradient_memory.value;
  };
  const double widest = 2 * double(scenario.model.hidden * scenario.model.intermediate) * 2;
  const double logits = 64 * 12.0;  // for each entry of the vocabulary
  ASSERT_GT(widest, 2 * 64 * logits);
  const double more = gradients(false, 64) - gradients(true, 64);
  EXPECT_GT(more, widest - 64 * logits);
  EXPECT_LE(more, widest);
  EXPECT_EQ(gradients(false, 1 << 20), gradients(true, 1 << 20));  // logits take more than that
}

// A model whose positions are not turned has no pass for it, fused or not.
TEST(Rotations, AreOfModelsThatTurn) {
  for (const bool fused : {true, false}) {
    Scenario scenario = training();
    scenario.train.fused = fused;
    scenario.model.max_context = 1024;
    const auto turns = [&](bool rotary) {
      scenario.model.rotary = rotary;
      return std::ranges::any_of(evaluate(scenario).kernels,
                                 [](const KernelRow& row) { return row.op == OpName::rope; });
    };
    EXPECT_TRUE(turns(true));
    EXPECT_FALSE(turns(false));
  }
}

// Sums over devices of the gradients of inputs go on beside the gradients of weights, unless these are put off or frozen, or plain
// PyTorch waits: without a split sequence as with one.
TEST(SummedInputs, GoOnBesideGradientsOfWeights) {
  const auto hidden = [](const Scenario& scenario) {
    double share = 0, time = 0;
    for (const KernelRow& row : evaluate(scenario).kernels) {
      if (row.phase != Phase::backward || row.family != Family::all_reduce) continue;
      share += row.work.hidden.value;
      time += row.work.time.value;
    }
    return share / time;
  };
  Scenario scenario = training();
  scenario.parallel.tp = 4;
  EXPECT_GT(hidden(scenario), 0.1);
  Scenario waits = scenario;
  waits.train.fused = false;
  EXPECT_EQ(hidden(waits), 0);
  Scenario frozen = scenario;
  frozen.train.method = Method::lora;
  EXPECT_EQ(hidden(frozen), 0);
  Scenario put_off = scenario;
  put_off.parallel.pp = 2;
  put_off.train.schedule = Schedule::zero_bubble;
  EXPECT_EQ(hidden(put_off), 0);
}

// Devices of a few large cores send by engines of their own: overlap is never slower than none, and costs them nothing.
TEST(Overlap, IsNeverInVain) {
  for (const char* device : {"tpu-v5p", "gaudi-3", "trainium-2", "h100-sxm", "l4"}) {
    Scenario scenario = training();
    scenario.device = toys::shipped("devices", device).device;
    scenario.device.memory_capacity = Bytes{1e13};
    scenario.parallel.dp = 8;
    scenario.train.zero = 3;
    const Metrics beside = figures_of(scenario);
    scenario.train.overlap = false;
    EXPECT_LT(beside.iteration_time, figures_of(scenario).iteration_time) << device;
  }
}

// A mixture of documents takes the mean of what they take: no longer than equal ones of the length that takes longest.
TEST(PackedDocuments, AMixtureTakesNoLongerThanItsWorst) {
  Scenario scenario = toys::shipped("models", "llama-3.1-8b");
  scenario.task = Task::train;
  scenario.device = toys::shipped("devices", "h200-sxm").device;
  scenario.device.memory_capacity = Bytes{1e13};
  scenario.host = toys::no_host();
  scenario.train = {.sequence = 32768, .micro_batch = 1, .global_batch = 1};
  const auto attention = [&](std::int64_t length, double deviation) {
    scenario.train.document_length = length;
    scenario.train.document_cv = deviation;
    return figures_of(scenario).attention_time.value;
  };
  double worst = 0;
  for (std::int64_t length = 64; length <= 8192; length *= 2) {
    worst = std::max(worst, attention(length, 0));
  }
  for (const auto& [length, deviation] : {std::pair{256, 2.0}, {1024, 1.0}, {64, 4.0}}) {
    EXPECT_LE(attention(length, deviation), worst) << length;
  }
  // As equal ones with the same pairs: 64 x (1 + 16) tokens around a token.
  EXPECT_NEAR(attention(64, 4.0) / attention(1088, 0), 1, 0.1);
}

}  // namespace
}  // namespace engine

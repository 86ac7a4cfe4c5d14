// What kernels of training steps move and compute beside products, each worked out by hand or held to what an H200 took.
#include <gtest/gtest.h>

#include "engine/evaluate.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"
#include "tests/support/training_toy.h"

namespace engine {
namespace {

using toys::figures_of;
using toys::training;

Work work_of(const Outcome& outcome, OpName op, Family family, Phase phase) {
  Work sum;
  for (const KernelRow& row : outcome.kernels) {
    if (row.op == op && row.family == family && row.phase == phase) sum.add(row.work);
  }
  return sum;
}

// A logit is read, read and written by a fused loss, then scaled in place: 10 bytes in 16 bits. Written as operations it is
// widened (6 bytes, at half the rate), read three times and written in 32 bits, and more than that on its way back.
TEST(Loss, MovesWhatItsKernelsReadAndWrite) {
  Scenario scenario = training();
  const double logits = 1024 * 16 * double(scenario.model.vocabulary);
  for (const bool fused : {true, false}) {
    scenario.train.fused_loss = fused;
    const Outcome outcome = evaluate(scenario);
    const auto bytes = [&](Phase phase) {
      return work_of(outcome, OpName::loss, Family::residual, phase).bytes.value / logits;
    };
    EXPECT_NEAR(bytes(Phase::forward), fused ? 6 : 28, 1e-9);
    EXPECT_NEAR(bytes(Phase::backward), fused ? 4 : 30, 1e-9);
  }
}

// Plain PyTorch has a kernel for an activation without a gate, and two for one with it.
TEST(UnfusedActivations, AreThoseWithAGate) {
  for (const MlpKind mlp : {MlpKind::plain, MlpKind::gated}) {
    Scenario scenario = training();
    scenario.model.mlp = mlp;
    const auto bytes = [&](bool fused, Phase phase) {
      scenario.train.fused = fused;
      return work_of(evaluate(scenario), OpName::activation, Family::act, phase).bytes;
    };
    for (const Phase phase : {Phase::forward, Phase::backward}) {
      if (mlp == MlpKind::plain) {
        EXPECT_EQ(bytes(false, phase), bytes(true, phase));
      } else {
        EXPECT_GT(bytes(false, phase), bytes(true, phase));
      }
    }
  }
}

Seconds attention_of(std::int64_t head_dim, const char* device, AttentionGeneration kernels,
                     Phase phase) {
  Scenario scenario = training();
  scenario.device = toys::shipped("devices", device).device;
  scenario.calibration.tier = TierChoice::transfer;
  scenario.model.heads = scenario.model.kv_heads = 32;
  scenario.model.head_dim = head_dim;
  scenario.train.sequence = 8192;
  scenario.model.max_context = 8192;
  scenario.train.attention_kernel = kernels;
  const Outcome outcome = evaluate(scenario, toys::transfer_resources());
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return work_of(outcome, OpName::attention, Family::attn_prefill, phase).time;
}

// Measured on an H200 with 32 heads and 8,192 tokens: 863, 869 and 882 us forward for heads of 80, 96 and 128 values.
TEST(PaddedHeads, TakeAsLongAsTheTileTheyFill) {
  using enum AttentionGeneration;
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    const Seconds full = attention_of(128, "h200-sxm", best, phase);
    for (const std::int64_t narrow : {80, 96}) {
      EXPECT_NEAR(attention_of(narrow, "h200-sxm", best, phase) / full, 1, 0.06) << narrow;
    }
    EXPECT_LT(attention_of(64, "h200-sxm", best, phase) / full, 0.8);
    // FlashAttention-2 fills 96; the one in Triton powers of two.
    EXPECT_NEAR(attention_of(80, "a100-80gb-sxm", flash_2, phase) /
                    attention_of(96, "a100-80gb-sxm", flash_2, phase),
                1, 0.06);
    EXPECT_NEAR(attention_of(80, "a100-80gb-sxm", triton, phase) /
                    attention_of(128, "a100-80gb-sxm", triton, phase),
                1, 0.1);
  }
}

// Muon makes the same matrices orthogonal whether products of passes ran whole or in pieces.
TEST(Muon, DoesNotDependOnHowPassesRan) {
  Scenario scenario = training();
  scenario.parallel.tp = 4;
  scenario.train.optimizer = Optimizer::muon;
  scenario.train.sequence_parallel = true;
  const Seconds whole = figures_of(scenario).optimizer_time;
  scenario.train.tp_overlap = true;
  EXPECT_EQ(figures_of(scenario).optimizer_time, whole);
}

// Idle time between kernels is no wait for launches.
TEST(IdleTime, IsToldApart) {
  Scenario scenario = training();
  const Metrics none = figures_of(scenario);
  EXPECT_EQ(none.gap_time.value, 0);
  scenario.host.kernel_gap = Seconds{20e-6};
  const Metrics gaps = figures_of(scenario);
  EXPECT_EQ(gaps.host_time.value, 0);
  EXPECT_NEAR((gaps.iteration_time - none.iteration_time) / gaps.gap_time, 1, 1e-9);
}

}  // namespace
}  // namespace engine

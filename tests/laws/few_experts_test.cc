// Mixtures at their limits: an expert alone is a dense MLP with a router before it, and where every token visits all experts
// there are no favourites.
#include <gtest/gtest.h>

#include "engine/evaluate.h"
#include "tests/support/random_load.h"
#include "tests/support/shipped.h"

namespace engine {
namespace {

Scenario random_step(toys::Dice& dice) {
  Scenario point = toys::scenario();
  point.device = toys::shipped("devices", dice.chance(0.5) ? "h100-sxm" : "a100-80gb-sxm").device;
  point.device.memory_capacity = Bytes{1e13};
  point.model.hidden = 256 * dice.whole(2, 24);
  point.model.intermediate = 128 * dice.whole(4, 80);
  point.calibration.tier = dice.chance(0.5) ? TierChoice::roofline : TierChoice::transfer;
  point.step = {.phase = dice.one_of<StepPhase>(),
                .batch = dice.whole(1, 64),
                .context = dice.whole(16, 5000),
                .prompt = dice.whole(16, 2000)};
  if (dice.chance(0.3)) point.parallel.tp = 2;
  return point;
}

Outcome outcome_of(const Scenario& point) {
  const Outcome outcome = evaluate(point, toys::transfer_resources());
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome;
}

double flops_of(const Outcome& outcome) {
  double sum = 0;
  for (const KernelRow& row : outcome.kernels) sum += row.work.flops.value;
  return sum;
}

TEST(FewExperts, WhereEveryTokenVisitsAllThereAreNoFavourites) {
  for (std::uint64_t number = 0; number < 100; ++number) {
    toys::Dice dice(61'000 + number);
    Scenario point = random_step(dice);
    const std::int64_t experts = dice.whole(1, 4);
    // Fitted kernels of several experts take those that tokens visit from fits over real routers.
    if (experts > 1) point.calibration.tier = TierChoice::roofline;
    point.model.moe = {.experts = experts, .top_k = experts, .intermediate = 512, .skew = 0};
    const double even = outcome_of(point).metrics.step_time.value;
    for (const double skew : {0.5, 1.0, 2.0}) {
      point.model.moe.skew = skew;
      EXPECT_NEAR(outcome_of(point).metrics.step_time.value / even, 1, 1e-5)
          << number << " " << skew;
    }
  }
}

TEST(FewExperts, OneAloneIsADenseMlpBehindARouter) {
  for (std::uint64_t number = 0; number < 100; ++number) {
    toys::Dice dice(62'000 + number);
    const Scenario dense = random_step(dice);
    Scenario alone = dense;
    alone.model.moe = {.experts = 1, .top_k = 1, .intermediate = dense.model.intermediate};
    const Outcome as_mlp = outcome_of(dense), as_expert = outcome_of(alone);
    EXPECT_DOUBLE_EQ(as_expert.metrics.parameters - as_mlp.metrics.parameters,
                     double(dense.model.layers * dense.model.hidden));
    const double more = flops_of(as_expert) / flops_of(as_mlp) - 1;
    EXPECT_NEAR(more, 0, 0.01) << number;
    // Kernels that sort tokens come on top, by layer; those of experts have their activation inside.
    if (dense.calibration.tier != TierChoice::roofline) continue;
    const double layers = double(dense.model.layers);
    EXPECT_GE(as_expert.metrics.step_time.value, as_mlp.metrics.step_time.value * 0.9) << number;
    EXPECT_LT(as_expert.metrics.step_time.value,
              1.3 * as_mlp.metrics.step_time.value + layers * 50e-6)
        << number;
  }
}

}  // namespace
}  // namespace engine

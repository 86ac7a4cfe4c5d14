#include "engine/economics/price.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/evaluate.h"
#include "engine/explain.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

// $3.60 an hour is a tenth of a cent a second.
constexpr DollarsPerSecond kRent{1e-3};

TEST(Price, IsTheWholeRentOverTheTokensItNames) {
  const TokenPrices prices = token_prices(kRent, {.both = TokensPerSecond{1000},
                                                  .prompt = TokensPerSecond{800},
                                                  .output = TokensPerSecond{200}});
  EXPECT_DOUBLE_EQ(prices.both, 1.0);
  EXPECT_DOUBLE_EQ(prices.prompt, 1.25);
  EXPECT_DOUBLE_EQ(prices.output, 5.0);
}

TEST(Price, WithoutRentOrTokensThereIsNone) {
  const TokenPrices free = token_prices({}, {TokensPerSecond{1}, TokensPerSecond{1}, {}});
  EXPECT_TRUE(std::isnan(free.both) && std::isnan(free.prompt) && std::isnan(free.output));
  EXPECT_TRUE(std::isnan(token_prices(kRent, {.both = TokensPerSecond{1}}).prompt));
}

std::vector<Scenario> one_of_each_task() {
  Scenario step = toys::scenario();
  Scenario prefill = step;
  prefill.step.phase = StepPhase::prefill;
  Scenario request = step;
  request.task = Task::request;
  Scenario serve = step;
  serve.task = Task::serve;
  serve.load.requests = 50;
  return {step, prefill, request, serve};
}

TEST(Price, OfEveryTaskIsTheRentOfItsDevicesOverItsTokens) {
  for (Scenario scenario : one_of_each_task()) {
    scenario.parallel.tp = 2;
    const Outcome outcome = evaluate(scenario);
    ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
    const Metrics& metrics = outcome.metrics;
    EXPECT_NEAR(metrics.rent / (scenario.device.rent * 2.0), 1, 1e-12);
    const double dollars = metrics.rent.value * 1e6;
    EXPECT_NEAR(metrics.price_usd_per_mtok * metrics.total.value / dollars, 1, 1e-12);
    EXPECT_NEAR(metrics.price_usd_per_mtok_output * metrics.output.value / dollars, 1, 1e-12);
    const bool prompts = scenario.task != Task::step || scenario.step.phase == StepPhase::prefill;
    EXPECT_EQ(std::isnan(metrics.price_usd_per_mtok_prompt), !prompts);
    if (prompts) {
      EXPECT_GE(metrics.price_usd_per_mtok_prompt, metrics.price_usd_per_mtok);
    }
  }
}

TEST(Price, ADeviceWithoutRentHasNoneAndSaysSo) {
  for (Scenario scenario : one_of_each_task()) {
    scenario.device.rent = {};
    const Outcome outcome = evaluate(scenario);
    ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
    EXPECT_TRUE(std::isnan(outcome.metrics.rent.value));
    EXPECT_TRUE(std::isnan(outcome.metrics.price_usd_per_mtok));
    EXPECT_NE(explain(scenario, outcome).find("no price: toy has no rent"), std::string::npos);
  }
}

}  // namespace
}  // namespace engine

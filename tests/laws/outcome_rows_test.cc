// Memory that is used again for the next point keeps nothing of the one before.
#include <gtest/gtest.h>

#include <string>

#include "engine/sound_figures.h"
#include "tests/support/serving_toys.h"

namespace engine {
namespace {

// Fills every table that there is: a new table needs a setting here.
Scenario with_every_table() {
  Scenario scenario = toys::served_at(20);
  scenario.load.requests = 50;
  scenario.output.requests = true;
  scenario.output.timeline = Seconds{0.1};
  return scenario;
}

template <class Check>
void for_each_table(const Outcome& outcome, Check check) {
  each_detail_table([&](const auto& table) { check(table.name, (outcome.*table.rows).size()); });
}

void expect_no_rows(const Outcome& outcome, const char* after) {
  for_each_table(outcome, [&](std::string_view name, std::size_t rows) {
    EXPECT_EQ(rows, 0u) << "rows of " << name << " are left after " << after;
  });
}

TEST(OutcomeRows, NothingOfAPointIsLeftInTheNext) {
  Outcome outcome;
  const auto fill = [&] {
    evaluate_into(with_every_table(), outcome);
    ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
    for_each_table(outcome, [](std::string_view name, std::size_t rows) {
      EXPECT_GT(rows, 0u) << "no row of " << name << " to begin with";
    });
  };
  // A point that cannot work has no rows and no figures.
  Scenario too_large = toys::scenario();
  too_large.device.memory_capacity = Bytes{1};
  fill();
  evaluate_into(too_large, outcome);
  EXPECT_EQ(outcome.status, Status::infeasible);
  expect_no_rows(outcome, "an infeasible point");
  EXPECT_EQ(outcome.saturation, Saturation::none);
  EXPECT_EQ(outcome.load_rate, 0);
  EXPECT_TRUE(std::isnan(outcome.metrics.throughput.value));
  // One that breaks off has neither.
  fill();
  fail(outcome, {ReasonClass::error, "it broke off"});
  expect_no_rows(outcome, "a failed point");
  EXPECT_EQ(outcome.saturation, Saturation::none);
  // A step has kernels, and nothing else.
  fill();
  evaluate_into(toys::scenario(), outcome);
  EXPECT_EQ(outcome.kernels, evaluate(toys::scenario()).kernels);
  EXPECT_TRUE(outcome.requests.empty());
  EXPECT_TRUE(outcome.timeline.empty());
}

}  // namespace
}  // namespace engine

// Timelines of policies that are worked out by hand. Every step takes 10 ms, so times are counts of steps.
#pragma once

#include <gtest/gtest.h>

#include "tests/support/serving_toys.h"

namespace toys {

inline constexpr double kStep = 10e-3;

// When a request was first scheduled, had its first token and was done, in steps.
inline void expect_steps(const engine::Outcome& outcome, std::int64_t number, double scheduled,
                         double first, double finish) {
  const engine::RequestRow row = row_of(outcome, number);
  EXPECT_NEAR(row.scheduled.value / kStep, scheduled, 1e-6) << "request " << number;
  EXPECT_NEAR(row.first_token.value / kStep, first, 1e-6) << "request " << number;
  EXPECT_NEAR(row.finish.value / kStep, finish, 1e-6) << "request " << number;
}

inline engine::Outcome run(const engine::Scenario& scenario, const engine::Resources& resources) {
  const engine::Outcome outcome = engine::evaluate(scenario, resources);
  EXPECT_EQ(outcome.status, engine::Status::ok) << outcome.reason;
  return outcome;
}

}  // namespace toys

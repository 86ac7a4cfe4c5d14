// What must hold of a row whatever was asked.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <string_view>

#include "engine/evaluate.h"

namespace toys {

// Units of work; what is not done by then ends as a row of its own.
inline constexpr double kSmallBudget = 3e5;

// Whatever was asked, the row makes sense.
inline void expect_sensible(const engine::Outcome& outcome, const std::string& what) {
  EXPECT_GT(outcome.metrics.devices, 0) << what;
  EXPECT_EQ(outcome.status == engine::Status::ok, outcome.reason.empty())
      << what << ": " << outcome.reason;
  EXPECT_EQ(outcome.status == engine::Status::ok, outcome.reason_class == engine::ReasonClass::none)
      << what;
  if (outcome.status != engine::Status::ok) return;
  engine::Metrics::fields(
      outcome.metrics, [&](std::string_view name, const auto& member, auto&&...) {
        double value = 0;
        if constexpr (requires { member.value; }) {
          value = member.value;
        } else {
          value = member;
        }
        EXPECT_FALSE(std::isinf(value) || value < 0) << what << ": " << name << " is " << value;
      });
  for (const engine::KernelRow& row : outcome.kernels) {
    EXPECT_TRUE(std::isfinite(row.work.time.value) && row.work.time.value >= 0) << what;
  }
}

// Within that budget, and with nothing loaded.
inline engine::Outcome bounded(const engine::Scenario& scenario) {
  engine::WorkMeter meter(kSmallBudget);
  engine::Outcome outcome;
  engine::Scratch scratch;
  engine::evaluate_into(scenario, engine::Resources{}, outcome, meter, scratch);
  return outcome;
}

}  // namespace toys

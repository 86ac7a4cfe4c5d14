// Small scenarios that speculate, and what tests compare of their outcomes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/evaluate.h"
#include "tests/support/toys.h"

namespace toys {

// The host takes nothing for proposals.
inline engine::Scenario speculative(engine::SpeculationMethod method, std::int64_t tokens,
                                    const std::string& acceptance) {
  engine::Scenario scenario = toys::scenario();
  scenario.speculation = {.method = method,
                          .tokens = tokens,
                          .acceptance = acceptance,
                          .draft_overhead = engine::Seconds{0},
                          .lookup_time = engine::Seconds{0}};
  return scenario;
}

// With a draft of two of the main model's layers.
inline engine::Scenario with_draft(engine::Scenario scenario) {
  scenario.draft.present = true;
  fill_roles(scenario);
  scenario.draft.deployment.model.layers = 2;
  return scenario;
}

inline engine::Outcome sound(const engine::Scenario& scenario) {
  engine::Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, engine::Status::ok) << outcome.reason;
  return outcome;
}

// Figures that are what a large sum leaves over are compared with that sum.
inline void expect_same_figures(const engine::Outcome& a, const engine::Outcome& b,
                                double tolerance) {
  const auto left = figure_values(a.metrics), right = figure_values(b.metrics);
  std::vector<std::string> names;
  engine::Metrics::fields(a.metrics, [&](std::string_view name, const auto&, std::string_view) {
    names.emplace_back(name);
  });
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (std::isnan(left[i]) && std::isnan(right[i])) continue;
    const bool rest = names[i].starts_with("queue") || names[i] == "host_time";
    const double scale = rest && tolerance > 0 ? a.metrics.makespan.value : 0;
    const double size = std::max({std::abs(left[i]), std::abs(right[i]), scale});
    EXPECT_LE(std::abs(left[i] - right[i]), tolerance * size)
        << names[i] << " " << left[i] << " " << right[i];
  }
}

}  // namespace toys

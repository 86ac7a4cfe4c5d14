// A small training step that fits anywhere, and its figures.
#pragma once

#include <gtest/gtest.h>

#include "engine/evaluate.h"
#include "tests/support/toys.h"

namespace toys {

inline engine::Scenario training() {
  engine::Scenario scenario = toys::scenario();
  scenario.task = engine::Task::train;
  scenario.host = toys::no_host();
  scenario.train = {.sequence = 1024, .micro_batch = 1, .global_batch = 16};
  scenario.device.memory_capacity = engine::Bytes{1e12};
  return scenario;
}

// Of a point that works.
inline engine::Metrics figures_of(const engine::Scenario& scenario) {
  const engine::Outcome outcome = engine::evaluate(scenario);
  EXPECT_EQ(outcome.status, engine::Status::ok) << outcome.reason;
  return outcome.metrics;
}

}  // namespace toys

// Toys of two models on one device.
#pragma once

#include <gtest/gtest.h>

#include "engine/evaluate.h"
#include "tests/support/toys.h"

namespace toys {

// Twins that share a device without any loss but what the mode makes them lose.
inline engine::Scenario twins(engine::SharingMode mode) {
  engine::Scenario scenario = toys::scenario();
  scenario.host = no_host();
  scenario.step = {.phase = engine::StepPhase::decode, .batch = 8, .context = 1000};
  scenario.neighbour.present = true;
  engine::fill_roles(scenario);
  scenario.sharing = {.mode = mode, .switch_time = engine::Seconds{0}};
  return scenario;
}

inline engine::Scenario served_twins(engine::SharingMode mode) {
  engine::Scenario scenario = twins(mode);
  scenario.task = engine::Task::serve;
  scenario.load.rate = engine::RequestsPerSecond{20};
  scenario.load.requests = 400;
  scenario.load.lengths = {.prompt = 200, .output = 40};
  engine::fill_roles(scenario);
  return scenario;
}

inline engine::Metrics figures(const engine::Scenario& scenario) {
  const engine::Outcome outcome = engine::evaluate(scenario);
  EXPECT_EQ(outcome.status, engine::Status::ok) << outcome.reason;
  return outcome.metrics;
}

}  // namespace toys

// Toys that learn from samples of their own.
#pragma once

#include "engine/scenario.h"
#include "tests/support/training_toy.h"

namespace toys {

// Eight devices train; 64 samples of 600 tokens make an iteration.
inline engine::Scenario learning() {
  engine::Scenario scenario = training();
  scenario.parallel.dp = 8;
  scenario.train.sequence = 2048;
  scenario.train.rollout = {.prompts = 16, .samples = 4, .lengths = {.prompt = 200, .output = 400}};
  scenario.rollout.present = true;
  engine::fill_roles(scenario);
  scenario.rollout.deployment.parallel.dp = 1;
  return scenario;
}

// The same on devices of their own, four of them.
inline engine::Scenario apart() {
  engine::Scenario scenario = learning();
  scenario.train.rollout.colocated = false;
  scenario.rollout.deployment.serving.replicas = 4;
  return scenario;
}

}  // namespace toys

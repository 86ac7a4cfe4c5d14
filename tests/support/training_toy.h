// A small training step that fits anywhere.
#pragma once

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

}  // namespace toys

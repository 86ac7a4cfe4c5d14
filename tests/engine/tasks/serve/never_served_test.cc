// A run that ends with requests inside is an error of the simulation, and its point says so.
#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>
#include <string>

#include "engine/deploy.h"
#include "engine/tasks/serve/serve_task.h"
#include "tests/support/serving_toys.h"

namespace engine {
namespace {

// Another model has the devices for ever.
TEST(ServeTask, WhoeverNeverHasATurnIsNoFigure) {
  Scenario scenario = toys::served_at(1);
  scenario.load.requests = 20;
  const Resources resources;
  Deployed main;
  ASSERT_FALSE(deploy(scenario, scenario.calibration, resources.calibrations, 1, main));
  WorkMeter work;
  Scratch scratch;
  Outcome outcome;
  std::string said;
  try {
    run_serve({.scenario = scenario,
               .resources = resources,
               .main = main,
               .draft = nullptr,
               .work = work,
               .scratch = scratch,
               .beside = {.turns = {.period = std::numeric_limits<double>::infinity()}}},
              outcome);
  } catch (const std::runtime_error& error) {
    said = error.what();
  }
  EXPECT_EQ(said, "20 requests wait for one another and never end: an error of the simulation");
}

}  // namespace
}  // namespace engine

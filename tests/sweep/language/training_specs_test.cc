// The shipped settings of training libraries run, and say what a published recipe says.
#include <gtest/gtest.h>

#include "engine/evaluate.h"
#include "sweep/language/load_spec.h"
#include "tests/support/paths.h"
#include "tests/support/shipped.h"
#include "tests/support/training_toy.h"
#include "tests/sweep/sweep_fixture.h"

namespace sweep {
namespace {

engine::Scenario under(const std::string& name, std::int64_t replicas) {
  engine::Scenario scenario;
  scenario.task = engine::Task::train;
  scenario.device = toys::shipped("devices", "h100-sxm").device;
  scenario.model = toys::shipped("models", "llama-3.2-1b").model;
  scenario.train = toys::shipped("training", name).train;
  scenario.train.sequence = 2048;
  scenario.train.global_batch = 8;
  scenario.parallel.dp = replicas;
  return scenario;
}

std::vector<std::string> names() { return Library({paths::specs()}).names("training"); }

TEST(TrainingSpecs, EachTrainsAModelOnOneDeviceAndOnEight) {
  EXPECT_GE(names().size(), 4);
  for (const std::string& name : names()) {
    for (const std::int64_t replicas : {1, 8}) {
      const engine::Scenario scenario = under(name, replicas);
      const engine::Outcome outcome = engine::evaluate(scenario);
      EXPECT_EQ(outcome.status, engine::Status::ok) << name << ": " << outcome.reason;
      EXPECT_EQ(scenario.train.name, name);
    }
  }
}

// A plain library takes longer than one with kernels of its own, and libraries that share weights out keep less of them.
TEST(TrainingSpecs, DifferAsTheirLibrariesDo) {
  const auto figures = [](const std::string& name) { return toys::figures_of(under(name, 8)); };
  EXPECT_GT(figures("deepspeed-zero-3").forward_time, figures("torchtitan").forward_time);
  EXPECT_LT(figures("torchtitan").gradient_memory, figures("megatron-bridge").gradient_memory);
  EXPECT_EQ(2 * figures("megatron-bridge").gradient_memory.value,
            figures("megatron").gradient_memory.value);
}

}  // namespace
}  // namespace sweep

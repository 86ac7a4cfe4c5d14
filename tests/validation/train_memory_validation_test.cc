// Peak memory of training steps on an H200 by what becomes of gradients and by how many layers are computed again
// (tools/gpu/train_memory.py). Nothing is fitted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/evaluate.h"
#include "tests/support/csv_rows.h"
#include "tests/support/measured_train_steps.h"

namespace engine {
namespace {

Scenario scenario_of(const toys::CsvRow& row) {
  Scenario scenario = toys::measured_train_step(row);
  const std::string& gradients = row.at("gradients");
  scenario.train.gradient_buffers = gradients == "kept"     ? GradientBuffers::kept
                                    : gradients == "remade" ? GradientBuffers::remade
                                                            : GradientBuffers::freed;
  if (const std::int64_t again = std::stoll(row.at("again")); again > 0) {
    scenario.train.recompute = Recompute::full;
    scenario.train.recompute_first = again;
  }
  return scenario;
}

TEST(MeasuredTrainingMemory, IsMetOnAnH200) {
  std::vector<double> errors;
  for (const toys::CsvRow& row : toys::csv_rows("calibration/h200-sxm/train_memory.csv")) {
    if (row.at("optimizer") != "fused") continue;  // lists of tensors take memory of their own
    const Outcome outcome = evaluate(scenario_of(row));
    ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
    const double error = outcome.metrics.peak_memory.value / std::stod(row.at("peak_bytes")) - 1;
    errors.push_back(std::abs(error));
    EXPECT_LT(std::abs(error), 0.06)
        << row.at("model") << " " << row.at("micro_batch") << " x " << row.at("sequence") << " "
        << row.at("gradients") << ", " << row.at("again") << " again: " << error;
  }
  ASSERT_GE(errors.size(), 60u);
  std::ranges::sort(errors);
  EXPECT_LT(errors[errors.size() / 2], 0.01);
}

}  // namespace
}  // namespace engine

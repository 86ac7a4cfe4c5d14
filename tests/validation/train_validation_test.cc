// Training steps of real PyTorch models on an H200, measured by tools/gpu/train_sweep.py: forward, backward and optimizer
// times and peak memory. Factors of eager passes, of attention's backward kernel and of the optimizer were fitted to these
// rows, so this holds the fit; it is no independent check.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "engine/evaluate.h"
#include "sweep/input/csv.h"
#include "tests/support/calibrations.h"
#include "tests/support/csv_rows.h"
#include "tests/support/paths.h"
#include "tests/support/shipped.h"

namespace engine {
namespace {

using Row = toys::CsvRow;

Scenario scenario_of(const Row& row) {
  const auto number = [&row](const char* name) { return std::int64_t(std::stoll(row.at(name))); };
  static const Device device = toys::shipped("devices", "h200-sxm").device;
  Scenario scenario;
  scenario.task = Task::train;
  scenario.device = device;
  scenario.host = toys::shipped("hosts", "none").host;
  scenario.model.layers = number("layers");
  scenario.model.hidden = number("hidden");
  scenario.model.heads = number("q_heads");
  scenario.model.kv_heads = number("kv_heads");
  scenario.model.head_dim = number("head_dim");
  scenario.model.intermediate = number("inter");
  scenario.model.vocabulary = number("vocabulary");
  scenario.model.mlp = row.at("gated") == "1" ? MlpKind::gated : MlpKind::plain;
  scenario.train = {.sequence = number("sequence"),
                    .micro_batch = number("micro_batch"),
                    .global_batch = number("micro_batch"),
                    .recompute = row.at("recompute") == "full"        ? Recompute::full
                                 : row.at("recompute") == "attention" ? Recompute::attention
                                                                      : Recompute::none,
                    .gradients = StateFormat::bf16,
                    .master_weights = StateFormat::none,
                    .moments = StateFormat::bf16,
                    .fused = row.at("mode") == "compiled",
                    .fused_loss = false,
                    .reserved_memory = Bytes{0}};
  return scenario;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.at(values.size() / 2);
}

// Where the host's launches take longer than the device's work, a row tells of the host.
bool bound_by_launches(const Row& row) {
  const double tokens = std::stod(row.at("micro_batch")) * std::stod(row.at("sequence"));
  return tokens * std::stod(row.at("hidden")) < 12e6;
}

TEST(MeasuredTraining, StepsOnAnH200) {
  std::vector<double> forward, backward, optimizer, memory;
  const auto error = [](double predicted, const std::string& measured) {
    return std::abs(predicted / std::stod(measured) - 1);
  };
  for (const Row& row : toys::csv_rows("calibration/h200-sxm/train_steps.csv")) {
    const Outcome outcome = evaluate(scenario_of(row), toys::transfer_resources());
    ASSERT_EQ(outcome.status, Status::ok) << row.at("model") << ": " << outcome.reason;
    memory.push_back(error(outcome.metrics.peak_memory.value, row.at("peak_bytes")));
    if (bound_by_launches(row)) continue;
    forward.push_back(error(outcome.metrics.forward_time.value, row.at("forward_s")));
    backward.push_back(error(outcome.metrics.backward_time.value, row.at("backward_s")));
    optimizer.push_back(error(outcome.metrics.optimizer_time.value, row.at("optimizer_s")));
  }
  EXPECT_GE(memory.size(), 50u);
  EXPECT_GE(forward.size(), 30u);
  EXPECT_LT(median(forward), 0.06);
  EXPECT_LT(median(backward), 0.06);
  EXPECT_LT(median(optimizer), 0.06);
  EXPECT_LT(median(memory), 0.02);
}

}  // namespace
}  // namespace engine

// Attention of verification steps on an H200, measured by tools/gpu/verify_sweep.py: one to eight new tokens a sequence in
// the decode kernel that the calibration was measured on. Nothing was fitted to these rows but those of one token.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "engine/evaluate.h"
#include "engine/kernels/attention.h"
#include "sweep/input/csv.h"
#include "sweep/language/library.h"
#include "sweep/language/sweep_spec.h"
#include "sweep/space/space_parts.h"
#include "tests/support/calibrations.h"
#include "tests/support/csv_rows.h"
#include "tests/support/paths.h"

namespace engine {
namespace {

std::vector<toys::CsvRow> measured_rows() {
  std::vector<toys::CsvRow> rows = toys::csv_rows("calibration/h200-sxm/verify_attention.csv");
  std::erase_if(rows, [](toys::CsvRow& row) { return row["impl"] != "triton:decode"; });
  return rows;
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + std::ptrdiff_t(values.size() / 2));
  return values[values.size() / 2];
}

TEST(MeasuredVerification, OnAnH200) {
  const auto spec =
      sweep::read_sweep_text("base: {device: h200-sxm, model: llama-3.1-8b}\n",
                             paths::specs("verification.yaml"), sweep::Library({paths::specs("")}));
  ASSERT_TRUE(spec) << to_text(spec.mistakes());
  const Device device = spec->space.base().device;
  const Calibration& calibration = *spec->resources->calibrations.by_name.at("h200-sxm");
  std::map<std::int64_t, std::vector<double>> errors;  // by new tokens
  std::vector<double> several;
  for (const toys::CsvRow& row : measured_rows()) {
    const auto number = [&row](const char* name) { return std::int64_t(std::stoll(row.at(name))); };
    const AttentionDecode op{.sequences = number("batch"),
                             .queries = number("query_len"),
                             .kv_tokens = double(number("batch") * number("context_len")),
                             .heads = number("q_heads"),
                             .kv_heads = number("kv_heads"),
                             .key_dim = number("head_dim"),
                             .value_dim = number("head_dim")};
    const double predicted =
        attention_decode_time(op, device, Family::attn_decode, &calibration).time.value;
    const double error = std::abs(predicted / std::stod(row.at("seconds")) - 1);
    errors[op.queries].push_back(error);
    if (op.queries > 1) several.push_back(error);
  }
  for (const auto& [queries, values] : errors) {
    RecordProperty("median_error_" + std::to_string(queries), std::to_string(median(values)));
    EXPECT_GE(values.size(), 60U);
  }
  EXPECT_LT(median(errors.at(1)), 0.05) << "one new token";
  EXPECT_LT(median(several), 0.10) << "two to eight new tokens";
}

// Published speed-ups of a 70B model with a 1B draft are 1.5 to 2.5 for one user; a busy machine has none to give.
TEST(SpeculatedSeventyBillion, GainsAloneAndNotInACrowd) {
  const auto spec = sweep::read_sweep_text(
      "base:\n"
      "  device: h100-sxm\n"
      "  model: llama-3.1-70b\n"
      "  parallel: {tp: 8}\n"
      "  host: vllm-v1\n"
      "  speculation: {method: draft_model, draft: llama-3.2-1b, acceptance: [0.8, 0.75, 0.7, "
      "0.65]}\n"
      "axes: [{step.batch: [1, 256]}, {speculation.tokens: [0, 4]}]\n",
      paths::specs("speculation.yaml"), sweep::Library({paths::specs("")}));
  ASSERT_TRUE(spec) << to_text(spec.mistakes());
  std::vector<double> output;
  sweep::PointBuilder builder(spec->space);
  sweep::Point point;
  for (std::uint64_t i = 0; i < spec->space.size(); ++i) {
    builder.build(i, point);
    const Outcome outcome = evaluate(point.scenario, *spec->resources);
    ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
    output.push_back(outcome.metrics.output.value);
  }
  EXPECT_GT(output[1] / output[0], 1.5);
  EXPECT_LT(output[1] / output[0], 2.5);
  EXPECT_LT(output[3] / output[2], 1);
}

}  // namespace
}  // namespace engine

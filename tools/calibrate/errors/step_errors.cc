#include "tools/calibrate/errors/step_errors.h"

#include <fmt/core.h>

#include <map>
#include <utility>

#include "engine/model/model_spec.h"
#include "engine/step/step_time.h"
#include "results/text_table.h"
#include "tools/calibrate/tables/step_rows.h"

namespace tools {
namespace {

double predicted_step(const TableRow& row, const engine::ModelSpec& model, const StepCheck& check) {
  const engine::Parallelism parallel;
  const engine::Quantization quant;
  const engine::ModelShard shard = engine::shard_of(model, parallel, quant);
  const engine::Fabric fabric = engine::fabric_of(engine::Cluster{}, check.device);
  const engine::HostSettings host;
  const engine::StepContext context{check.device, fabric, shard, host, check.calibration};
  const engine::Phase phase =
      row.text("phase") == "decode" ? engine::Phase::decode : engine::Phase::prefill;
  const engine::DeviceTime time =
      engine::step_time(batch_of_step(row), context, phase, nullptr).device;
  return (time.total() + check.kernel_switch * time.launches()).value;
}

}  // namespace

engine::Result<std::vector<StepErrors>> step_errors(const std::filesystem::path& steps,
                                                    const StepCheck& check) {
  const auto table = results::read_table(steps);
  if (!table) return table.mistakes();
  for (const char* column : {"model", "phase", "mode", "batch", "seconds", "layers", "hidden",
                             "q_heads", "kv_heads", "head_dim", "inter", "vocabulary"}) {
    if (!table->find(column)) {
      return engine::Mistake{{steps.string(), 1, 1},
                             fmt::format("the table has no column '{}'", column),
                             "tools/gpu/measure.py --part steps writes such tables"};
    }
  }
  std::map<std::pair<std::string, std::string>, std::vector<Scored>> groups;
  for (std::size_t i = 0; i < table->rows(); ++i) {
    const TableRow row(*table, i);
    if (row.text("mode") != "graph" || row.number("seconds") <= 0) continue;
    const double predicted = predicted_step(row, model_of_step(row), check);
    const Scored scored{row.number("seconds"), predicted, 0, 0};
    const std::string phase(row.text("phase"));
    groups[{std::string(row.text("model")), phase}].push_back(scored);
    groups[{"~all", phase}].push_back(scored);  // sorts last
  }
  std::vector<StepErrors> rows;
  for (const auto& [key, scored] : groups) {
    rows.push_back({key.first == "~all" ? "all" : key.first, key.second, error_summary(scored)});
  }
  return rows;
}

std::string step_errors_text(const std::vector<StepErrors>& rows) {
  std::string text = fmt::format("{:<24} {:<9} {:>6} {:>7} {:>7} {:>7} {:>7}\n", "model", "step",
                                 "rows", "mean %", "median", "p90", "bias");
  for (const StepErrors& row : rows) {
    const ErrorSummary& errors = row.errors;
    text += fmt::format("{:<24} {:<9} {:>6} {:>7.1f} {:>7.1f} {:>7.1f} {:>+7.1f}\n", row.model,
                        row.phase, errors.rows, 100 * errors.mean, 100 * errors.median,
                        100 * errors.p90, 100 * errors.bias);
  }
  return text;
}

}  // namespace tools

#include "tools/calibrate/step_errors.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "engine/model/model_spec.h"
#include "engine/step/step_time.h"
#include "results/text_table.h"
#include "tools/calibrate/table_row.h"

namespace tools {
namespace {

// The shapes of tools/gpu/step_plan.py: one device's part, without its collectives.
struct StepShape {
  std::string_view name;
  std::int64_t layers, hidden, heads, kv_heads, intermediate, vocabulary;
};
constexpr StepShape kShapes[] = {
    {"llama-3.1-8b", 32, 4096, 32, 8, 14336, 128256},
    {"llama-3.1-70b-tp8-rank", 80, 8192, 8, 1, 3584, 16032},
    {"qwen3-14b-like", 40, 5120, 40, 8, 17408, 151936},
    {"qwen2.5-32b-tp2-rank", 64, 5120, 20, 4, 13824, 76032},
    {"llama-3.2-3b", 28, 3072, 24, 8, 8192, 128256},
};

std::optional<engine::ModelSpec> model_shape(std::string_view name) {
  const auto* shape = std::ranges::find(kShapes, name, &StepShape::name);
  if (shape == std::end(kShapes)) return std::nullopt;
  engine::ModelSpec model;
  model.name = name;
  model.layers = shape->layers;
  model.hidden = shape->hidden;
  model.heads = shape->heads;
  model.kv_heads = shape->kv_heads;
  model.head_dim = 128;
  model.intermediate = shape->intermediate;
  model.vocabulary = shape->vocabulary;
  model.tied_embeddings = false;
  return model;
}

engine::BatchShape batch_of(const TableRow& row) {
  engine::BatchShape batch;
  const std::string_view phase = row.text("phase");
  if (phase != "prefill")
    engine::add_decode(batch, row.count("batch"), row.count("context_len"), 0);
  if (phase == "prefill") {
    engine::add_prefill(batch, row.count("batch"), row.count("query_len"),
                        row.count("context_len") - row.count("query_len"), 0);
  } else if (phase == "mixed") {
    engine::add_prefill(batch, 1, row.count("query_len"),
                        row.count("chunk_context_len") - row.count("query_len"), 0);
  }
  batch.sampled = batch.prefill_sequences + batch.decode_sequences;
  return batch;
}

double predicted_step(const TableRow& row, const engine::ModelSpec& model, const StepCheck& check) {
  const engine::Parallelism parallel;
  const engine::Quantization quant;
  const engine::ModelShard shard = engine::shard_of(model, parallel, quant);
  const engine::Fabric fabric = engine::fabric_of(engine::Cluster{}, check.device);
  const engine::HostSettings host;
  const engine::StepContext context{check.device, fabric, shard, host, check.calibration};
  const engine::Phase phase =
      row.text("phase") == "decode" ? engine::Phase::decode : engine::Phase::prefill;
  const engine::DeviceTime time = engine::step_time(batch_of(row), context, phase, nullptr).device;
  return (time.total() + check.kernel_switch * time.launches).value;
}

}  // namespace

engine::Result<std::vector<StepErrors>> step_errors(const std::filesystem::path& steps,
                                                    const StepCheck& check) {
  const auto table = results::read_table(steps);
  if (!table) return table.mistakes();
  for (const char* column : {"model", "phase", "mode", "batch", "seconds"}) {
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
    const auto model = model_shape(row.text("model"));
    if (!model) {
      return engine::Mistake{table->where(i, *table->find("model")),
                             fmt::format("'{}' is no shape of tools/gpu", row.text("model")), ""};
    }
    const double predicted = predicted_step(row, *model, check);
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

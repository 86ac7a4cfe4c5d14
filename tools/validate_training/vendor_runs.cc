#include "tools/validate_training/vendor_runs.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "engine/model/model_ops.h"
#include "results/text_table.h"
#include "tools/calibrate/tables/table_row.h"
#include "tools/validate_training/run_parts.h"

namespace tools {
namespace {

namespace fs = std::filesystem;
using engine::Result;

// The shapes that MaxText makes of its base configuration by global_parameter_scale (configs/base.yml: 16 layers of 2,048 values, 16 heads
// of 128, an MLP of 7,168, all but the heads' size grown by powers of two), where the table states none.
struct ScaledShape {
  std::string_view name;
  std::int64_t layers, hidden, heads, intermediate;
};
constexpr std::array<ScaledShape, 4> kScaledShapes = {{
    {"16b", 32, 4096, 64, 28672},
    {"32b", 32, 8192, 64, 28672},
    {"64b", 64, 8192, 64, 28672},
    {"128b", 64, 8192, 128, 57344},
}};
constexpr std::int64_t kScaledHead = 128, kMaxTextVocabulary = 32000;

// Shapes that the table states have two matrices in an MLP: with a third they would have a third more weights than their names say.
engine::ModelSpec maxtext_shape(const TableRow& row) {
  engine::ModelSpec model;
  model.name = row.text("model");
  model.vocabulary = kMaxTextVocabulary;
  model.tied_embeddings = false;
  model.max_context = row.count("sequence");
  const auto scaled = std::ranges::find(kScaledShapes, row.text("model"), &ScaledShape::name);
  if (row.count("layers") > 0 || scaled == kScaledShapes.end()) {
    model.layers = row.count("layers");
    model.hidden = row.count("hidden");
    model.heads = model.kv_heads = row.count("heads");
    model.head_dim = row.count("head_dim");
    model.intermediate = row.count("mlp");
    model.mlp = engine::MlpKind::plain;
    return model;
  }
  model.layers = scaled->layers;
  model.hidden = scaled->hidden;
  model.heads = model.kv_heads = scaled->heads;
  model.head_dim = kScaledHead;
  model.intermediate = scaled->intermediate;
  return model;
}

// Chips of a slice share weights out, slices have copies (dcn_data_parallelism).
void take_slices(const TableRow& row, engine::Scenario& scenario) {
  engine::Parallelism& parallel = scenario.parallel;
  const std::int64_t chips = row.count("slices") * row.count("chips_per_slice");
  parallel.tp = row.count("tp");
  parallel.dp = chips / parallel.tp;
  engine::TrainSettings& train = scenario.train;
  train.sequence = row.count("sequence");
  train.global_batch = row.count("batch_per_chip") * chips;
  train.micro_batch = train.global_batch / parallel.dp;
  train.zero_group = row.count("chips_per_slice") / parallel.tp;
  train.recompute = engine::Recompute::full;
}

// The published figure counts six operations for each weight and token, and attention's products.
double tokens_per_second(const TableRow& row, const engine::ModelSpec& model) {
  const double attention =
      12 * double(model.layers * model.heads * model.head_dim) * double(row.count("sequence")) / 2;
  const double of_a_token = 6 * engine::parameter_counts(model).total() + attention;
  return row.number("tflops_per_chip") * 1e12 / of_a_token;
}

// Recipes of Intel's README (HabanaAI/Megatron-DeepSpeed, 1.18): degrees, sequences of a pass, and the format in which gradients are summed
// up (HL_GRAD_ACCUM_DTYPE). Llama 2 70B is there for 32 devices; with 64 it has twice the replicas.
struct GaudiRecipe {
  std::string_view model;
  std::int64_t tp, pp, micro_batch;
};
constexpr std::array<GaudiRecipe, 5> kGaudiRecipes = {{
    {"llama-2-7b", 1, 1, 1},
    {"llama-2-13b", 2, 2, 2},
    {"llama-2-70b", 8, 4, 1},
    {"llama-3.1-8b", 4, 1, 1},
    {"llama-3.1-70b", 8, 1, 1},
}};

void take_gaudi_settings(const TableRow& row, const GaudiRecipe& recipe,
                         engine::Scenario& scenario) {
  engine::Parallelism& parallel = scenario.parallel;
  parallel.tp = recipe.tp;
  parallel.pp = recipe.pp;
  parallel.dp = row.count("devices") / (recipe.tp * recipe.pp);
  engine::TrainSettings& train = scenario.train;
  train.sequence = scenario.model.max_context = row.count("sequence");
  train.micro_batch = recipe.micro_batch;
  train.global_batch = row.count("batch");
  train.recompute = engine::Recompute::attention;  // HL_CKP_ACT=2
  scenario.quant = {};
  scenario.quant.weights = scenario.quant.activations = engine::Dtype::fp8;
  scenario.quant.group = kOneScale;
}

}  // namespace

Result<bool> add_maxtext_runs(const fs::path& data, NamedSpecs& specs,
                              std::vector<TrainingRun>& runs) {
  const auto table = results::read_table(data / "published_maxtext_tpu" / "maxtext_tpu.csv");
  if (!table) return table.mistakes();
  const engine::Scenario* settings = specs.find("training", "maxtext");
  for (std::size_t i = 0; i < table->rows(); ++i) {
    const TableRow row(*table, i);
    TrainingRun run{.table = "published_maxtext_tpu", .model = std::string(row.text("model"))};
    run.name = fmt::format("{}, {} x {} {}", run.model, row.text("slices"),
                           row.text("chips_per_slice"), row.text("device"));
    // Any model of the library makes room for the shape.
    if (settings == nullptr ||
        !take_device(specs, {row.text("device"), "llama-3.1-8b", "none"}, run.scenario)) {
      return specs.mistakes();
    }
    run.scenario.train = settings->train;
    run.scenario.model = maxtext_shape(row);
    take_slices(row, run.scenario);
    run.tokens_per_s_per_device = tokens_per_second(row, run.scenario.model);
    run.not_stated = "shapes of MLPs and the vocabulary, which follow from MaxText's scripts";
    runs.push_back(std::move(run));
  }
  return true;
}

Result<bool> add_gaudi_runs(const fs::path& data, NamedSpecs& specs,
                            std::vector<TrainingRun>& runs) {
  const auto table = results::read_table(data / "published_intel_gaudi" / "intel_gaudi.csv");
  if (!table) return table.mistakes();
  const engine::Scenario* settings = specs.find("training", "gaudi-megatron");
  for (std::size_t i = 0; i < table->rows(); ++i) {
    const TableRow row(*table, i);
    if (row.text("task") != "train") continue;
    TrainingRun run{.table = "published_intel_gaudi", .model = std::string(row.text("model"))};
    run.name = fmt::format("{}, {} {}", run.model, row.text("devices"), row.text("device"));
    run.tokens_per_s_per_device = row.number("tokens_per_s") / row.number("devices");
    const auto recipe = std::ranges::find(kGaudiRecipes, row.text("model"), &GaudiRecipe::model);
    if (recipe == kGaudiRecipes.end()) {
      run.left_out = "a model that is not known here";
      runs.push_back(std::move(run));
      continue;
    }
    if (settings == nullptr ||
        !take_device(specs, {row.text("device"), run.model, "none"}, run.scenario)) {
      return specs.mistakes();
    }
    run.scenario.train = settings->train;
    take_gaudi_settings(row, *recipe, run.scenario);
    run.not_stated = "degrees, which follow from Intel's README";
    runs.push_back(std::move(run));
  }
  return true;
}

}  // namespace tools

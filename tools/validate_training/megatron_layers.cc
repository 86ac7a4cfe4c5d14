#include "tools/validate_training/megatron_layers.h"

#include <fmt/core.h>

#include <algorithm>

#include "results/text_table.h"
#include "tools/calibrate/tables/table_row.h"
#include "tools/validate_serving/named_specs.h"
#include "tools/validate_training/training_runs.h"

namespace tools {
namespace {

using engine::Scenario;

constexpr std::int64_t kBlock = 128;
constexpr std::int64_t kMicroBatches = 8;

void take_format(std::string_view precision, Scenario& scenario) {
  if (precision == "bf16") return;
  scenario.quant.weights = scenario.quant.activations = engine::Dtype::fp8;
  scenario.quant.group = precision == "fp8_block" ? kBlock : kOneScale;
}

// What a model's own code says beside its sizes (CASES of the script).
void take_model(std::string_view name, Scenario& scenario) {
  scenario.model.qk_norm = name.starts_with("qwen3");
  const bool nemotron = name.starts_with("nemotron");
  if (nemotron) {
    scenario.model.mlp = engine::MlpKind::plain;
    scenario.model.moe.shared_intermediate = 3712;
  }
  const bool biased = name.ends_with("_biased") || name.ends_with("_plain");
  scenario.train.fused_experts = !biased;
  scenario.train.fused_rotation = !biased && !nemotron;
}

Scenario layers_on(const engine::Device& device, const engine::HostSettings& host,
                   const TableRow& row) {
  Scenario scenario;
  scenario.task = engine::Task::train;
  scenario.device = device;
  scenario.host = host;
  engine::ModelSpec& model = scenario.model;
  model.layers = row.count("layers");
  model.hidden = row.count("hidden");
  model.heads = row.count("heads");
  model.kv_heads = row.count("kv_heads");
  model.head_dim = row.count("head_dim");
  model.vocabulary = 1024;  // none; it has to be something
  model.max_context = row.count("tokens");
  scenario.train = {.sequence = row.count("tokens"),
                    .micro_batch = 1,
                    .global_batch = kMicroBatches,
                    .expert_products = engine::ExpertProducts::one_by_one};
  const std::int64_t experts = row.count("experts"), top_k = row.count("top_k");
  if (experts > 0) {
    model.moe = {.experts = experts, .top_k = top_k, .intermediate = row.count("inter")};
    // Who has every token has a round number of rows.
    scenario.train.padded_experts = experts > top_k;
  } else {
    model.intermediate = row.count("inter");
  }
  take_format(row.text("precision"), scenario);
  take_model(row.text("case"), scenario);
  return scenario;
}

// Blocks of one hybrid were run kind by kind: as many scans, attentions and mixtures as a model of them has.
constexpr std::string_view kHybrid = "nemotron_3_nano_";
// Of another one, its scans alone.
constexpr std::string_view kScansAlone = "nemotron_nano_9b_scan";

void take_hybrid(Scenario& scenario) {
  engine::ModelSpec& model = scenario.model;
  const std::int64_t of_a_kind = model.layers;
  model.scan = {
      .state = 128, .heads = 64, .head_dim = 64, .groups = 8, .attention_layers = of_a_kind};
  model.layers = 2 * of_a_kind;
  model.mlp_layers = of_a_kind;
  scenario.train.fused_rotation = true;  // it has none
}

void take_scans(Scenario& scenario) {
  engine::ModelSpec& model = scenario.model;
  model.scan = {.state = 128, .heads = 128, .head_dim = 80, .groups = 8};
  model.intermediate = 0;
  model.norms_per_layer = 1;
}

// Hosts keep up with layers without experts, whose kernels slow down under the load; others are known by their kernels alone.
double seconds_of(const TableRow& row) {
  const bool kept_up = row.count("experts") == 0 && !row.text("case").starts_with(kHybrid);
  return row.number(kept_up ? "wall_s" : "busy_s") * row.number("layers");
}

std::string_view kind_of(const TableRow& row) {
  if (row.text("case").starts_with(kHybrid)) return "hybrid";
  if (row.text("case") == kScansAlone) return "scans";
  return row.count("experts") > 0 ? "mixture" : "dense";
}

MeasuredLayers& entry_of(const TableRow& row, std::vector<MeasuredLayers>& all) {
  const std::string what = fmt::format("{}, {}", kind_of(row), row.text("precision"));
  if (kind_of(row) == "hybrid") {
    const auto found = std::ranges::find(all, what, &MeasuredLayers::what);
    if (found != all.end()) return *found;
  } else if (row.text("way") == "backward") {
    return all.back();  // the forward pass is in the row before
  }
  return all.emplace_back(MeasuredLayers{.what = what});
}

}  // namespace

engine::Result<std::vector<MeasuredLayers>> megatron_layers(const std::filesystem::path& file,
                                                            const sweep::Library& library) {
  const auto table = results::read_table(file);
  if (!table) return table.mistakes();
  NamedSpecs specs(library);
  const Scenario* device = specs.find("devices", "h200-sxm");
  const Scenario* host = specs.find("hosts", "none");
  if (device == nullptr || host == nullptr) return specs.mistakes();
  std::vector<MeasuredLayers> all;
  for (std::size_t i = 0; i < table->rows(); ++i) {
    const TableRow row(*table, i);
    MeasuredLayers& entry = entry_of(row, all);
    entry.seconds += seconds_of(row);
    entry.scenario = layers_on(device->device, host->host, row);
    if (kind_of(row) == "hybrid") take_hybrid(entry.scenario);
    if (kind_of(row) == "scans") take_scans(entry.scenario);
  }
  return all;
}

double seconds_of_a_micro_batch(const Scenario& scenario, const engine::Metrics& metrics) {
  const auto passes = double(scenario.train.global_batch / scenario.train.micro_batch);
  return (metrics.forward_time + metrics.backward_time).value / passes;
}

}  // namespace tools

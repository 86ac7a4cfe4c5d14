#include "tools/validate_training/megatron_layers.h"

#include <fmt/core.h>

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

// Hosts keep up with layers without experts, whose kernels slow down under the load; others are known by their kernels alone.
double seconds_of(const TableRow& row) {
  return row.number(row.count("experts") > 0 ? "busy_s" : "wall_s") * row.number("layers");
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
    // A forward pass and the backward pass in the next row.
    if (row.text("way") == "backward") {
      all.back().seconds += seconds_of(row);
      continue;
    }
    all.push_back({.what = fmt::format("{}, {}", row.count("experts") > 0 ? "mixture" : "dense",
                                       row.text("precision")),
                   .scenario = layers_on(device->device, host->host, row),
                   .seconds = seconds_of(row)});
  }
  return all;
}

double seconds_of_a_micro_batch(const Scenario& scenario, const engine::Metrics& metrics) {
  const auto passes = double(scenario.train.global_batch / scenario.train.micro_batch);
  return (metrics.forward_time + metrics.backward_time).value / passes;
}

}  // namespace tools

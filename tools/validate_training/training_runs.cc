#include "tools/validate_training/training_runs.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "results/text_table.h"
#include "tools/calibrate/tables/model_columns.h"
#include "tools/calibrate/tables/table_row.h"
#include "tools/validate_serving/named_specs.h"
#include "tools/validate_training/megatron_runs.h"
#include "tools/validate_training/mlperf_runs.h"
#include "tools/validate_training/run_parts.h"
#include "tools/validate_training/vendor_runs.h"

namespace tools {
namespace {

namespace fs = std::filesystem;
using engine::Result;

// The host of our H200: no table says what its hosts take for a launch.
constexpr std::string_view kHost = "pytorch-training";

Result<bool> add_mosaic_runs(const fs::path& data, NamedSpecs& specs,
                             std::vector<TrainingRun>& runs) {
  const auto table = results::read_table(data / "train_mosaicml_mpt" / "mpt_training_open.csv");
  if (!table) return table.mistakes();
  for (std::size_t i = 0; i < table->rows(); ++i) {
    const TableRow row(*table, i);
    TrainingRun run{.table = "train_mosaicml_mpt",
                    .model = "mpt-" + std::string(row.text("Model"))};
    run.name = fmt::format("{}, {} tokens, {} {}", run.model, row.text("SeqLen (T)"),
                           row.text("# GPUs"), row.text("GPU"));
    run.tokens_per_s_per_device = row.number("Throughput (T/s/GPU)");
    if (!take_parts(specs, {row.text("GPU"), run.model, kHost}, run.scenario))
      return specs.mistakes();
    engine::TrainSettings& train = run.scenario.train;
    run.scenario.parallel.dp = row.count("# GPUs");
    train.sequence = row.count("SeqLen (T)");
    run.scenario.model.max_context = train.sequence;
    train.micro_batch = row.count("MicroBatchSize");
    train.global_batch = row.count("GlobalBatchSize");
    train.zero = 3;
    train.reshard = row.text("Sharding Strategy") == "FULL_SHARD";  // else SHARD_GRAD_OP
    train.reserved_memory = engine::Bytes{0};
    if (row.text("Activation Checkpointing") == "True") train.recompute = engine::Recompute::full;
    train.early_stop = true;
    if (row.text("MP Mode") == "PURE") {
      train.gradients = engine::StateFormat::bf16;
      train.master_weights = engine::StateFormat::none;
    }
    // Its scripts ask for FlashAttention in Triton (sweep.sh), and on 128 GPUs and more for the second generation (sweep.py), which
    // the table does not show: 64 and 128 H100s are within 1% (1B) and 4% (3B) of each other, where it would gain 12%.
    train.attention_kernel = engine::AttentionGeneration::triton;
    run.not_stated =
        "whether the table's runs kept the script's attention kernel, fused norms and loss";
    runs.push_back(std::move(run));
  }
  return true;
}

}  // namespace

Result<std::vector<TrainingRun>> training_runs(const fs::path& data,
                                               const sweep::Library& library) {
  NamedSpecs specs(library);
  std::vector<TrainingRun> runs;
  const auto add_all = [&](auto add) { return add(data, specs, runs); };
  for (const auto add : {add_megatron_runs, add_mosaic_runs}) {
    if (const auto added = add_all(add); !added) return added.mistakes();
  }
  // Tables that a folder of data may do without.
  const std::pair<std::string_view, decltype(&add_mlperf_runs)> further[]{
      {"published_mlperf_training", add_mlperf_runs},
      {"published_maxtext_tpu", add_maxtext_runs},
      {"published_intel_gaudi", add_gaudi_runs}};
  for (const auto& [folder, add] : further) {
    if (!fs::exists(data / folder)) continue;
    if (const auto added = add_all(add); !added) return added.mistakes();
  }
  return runs;
}

namespace {

// A step of a PyTorch model (tools/gpu/train_model.py) on our H200.
engine::Scenario step_on(const engine::Scenario& device, const engine::Scenario& host,
                         const TableRow& row) {
  engine::Scenario scenario;
  scenario.task = engine::Task::train;
  scenario.device = device.device;
  scenario.host = host.host;
  scenario.model = model_of_columns(row);
  scenario.model.mlp = row.count("gated") == 1 ? engine::MlpKind::gated : engine::MlpKind::plain;
  scenario.train = {.sequence = row.count("sequence"),
                    .micro_batch = row.count("micro_batch"),
                    .global_batch = row.count("micro_batch"),
                    .gradients = engine::StateFormat::bf16,
                    .master_weights = engine::StateFormat::none,
                    .moments = engine::StateFormat::bf16,
                    .fused = row.text("mode").starts_with("compiled"),
                    .fused_loss = false,
                    .reserved_memory = engine::Bytes{0},
                    .early_stop = true,
                    .fused_gradients = false};
  if (row.text("mode").ends_with("fp8")) {
    scenario.quant.weights = scenario.quant.activations = engine::Dtype::fp8;
    scenario.quant.group = kOneScale;
  }
  return scenario;
}

// What `make` makes of each row of a table of such steps.
template <class Made>
Result<std::vector<Made>> each_step(const fs::path& file, const sweep::Library& library,
                                    Made (*make)(engine::Scenario, const TableRow&)) {
  const auto table = results::read_table(file);
  if (!table) return table.mistakes();
  NamedSpecs specs(library);
  const engine::Scenario* device = specs.find("devices", "h200-sxm");
  const engine::Scenario* host = specs.find("hosts", kHost);
  if (device == nullptr || host == nullptr) return specs.mistakes();
  std::vector<Made> made;
  for (std::size_t i = 0; i < table->rows(); ++i) {
    const TableRow row(*table, i);
    made.push_back(make(step_on(*device, *host, row), row));
  }
  return made;
}

MeasuredStep measured_step(engine::Scenario scenario, const TableRow& row) {
  MeasuredStep step{.mode = std::string(row.text("mode")),
                    .recompute = std::string(row.text("recompute")),
                    .forward = row.number("forward_s"),
                    .backward = row.number("backward_s"),
                    .optimizer = row.number("optimizer_s"),
                    .peak_bytes = row.number("peak_bytes")};
  scenario.train.cuda_graphs = step.mode == "graph";
  scenario.train.recompute = step.recompute == "full"        ? engine::Recompute::full
                             : step.recompute == "attention" ? engine::Recompute::attention
                                                             : engine::Recompute::none;
  const double values =
      double(scenario.train.micro_batch * scenario.train.sequence) * double(scenario.model.hidden);
  step.launch_bound = values < 12e6;
  step.scenario = std::move(scenario);
  return step;
}

MeasuredLoad measured_load(engine::Scenario scenario, const TableRow& row) {
  return {std::move(scenario), row.number("step_s"), row.number("power_w")};
}

}  // namespace

Result<std::vector<MeasuredStep>> measured_steps(const fs::path& file,
                                                 const sweep::Library& library) {
  return each_step(file, library, measured_step);
}

Result<std::vector<MeasuredLoad>> measured_loads(const fs::path& file,
                                                 const sweep::Library& library) {
  return each_step(file, library, measured_load);
}

}  // namespace tools

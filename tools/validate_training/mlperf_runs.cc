#include "tools/validate_training/mlperf_runs.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "results/text_table.h"
#include "tools/calibrate/tables/table_row.h"
#include "tools/validate_training/run_parts.h"

namespace tools {
namespace {

namespace fs = std::filesystem;
using engine::Recompute;
using engine::Result;

// What a benchmark trains, on sequences of which length, and with which settings of its library.
struct Benchmark {
  std::string_view name, model;
  std::int64_t sequence;
  std::string_view megatron;
};
constexpr std::array<Benchmark, 3> kBenchmarks = {{
    {"gpt3", "gpt3-175b", 2048, "nemo-pretraining"},
    {"llama2_70b_lora", "llama-2-70b", 8192, "nemo-lora"},
    {"llama31_405b", "llama-3.1-405b", 8192, "nemo-pretraining"},
}};

// Where inputs of activations are kept in fp8 (FP8_ACTIVATION and FP8_ACT of the submitters' files), and how many layers are computed again
// (ACL, with ACM=block).
struct Kept {
  std::string_view device;
  std::int64_t computed_again;
};
constexpr auto kKeptNarrow = std::to_array<Kept>({
    {"h200-sxm", 0},
    {"h200-nvl", 0},
    {"b200-sxm", 0},
    {"gb200", 0},
    {"mi300x", 21},
    {"mi325x", 21},
});

std::string_view settings_of(const TableRow& row, const Benchmark& benchmark) {
  if (row.text("library") == "maxtext") return "maxtext";
  if (row.text("library") == "deepspeed") return "deepspeed-zero-3";
  return row.text("device") == "gaudi-2" ? "gaudi-megatron" : benchmark.megatron;
}

std::string_view host_of(std::string_view settings) {
  if (settings == "maxtext" || settings == "gaudi-megatron") return "none";
  return settings == "deepspeed-zero-3" ? "pytorch-training" : "megatron";
}

// The scripts of 1,024 v5p chips and more save all products but the MLP's first ones (save_dot_except_mlpwi).
Recompute recompute_of(const TableRow& row) {
  const std::string_view name = row.text("recompute");
  if (name == "full") return Recompute::full;
  if (name == "attention") return Recompute::attention;
  return name == "activations" ? Recompute::attention_and_gates : Recompute::none;
}

void take_adapters(const TableRow& row, engine::TrainSettings& train) {
  train.method = engine::Method::lora;
  train.lora_rank = 16;
  train.lora_targets = engine::LoraTargets::attention;
  const auto kept = std::ranges::find(kKeptNarrow, row.text("device"), &Kept::device);
  if (kept == kKeptNarrow.end()) return;
  train.narrow_activation_inputs = true;
  if (kept->computed_again == 0) return;
  train.recompute = Recompute::full;
  train.recompute_first = kept->computed_again;
}

void take_mlperf_settings(const TableRow& row, const Benchmark& benchmark,
                          engine::Scenario& scenario) {
  const auto degree = [&](std::string_view column) {
    return std::max<std::int64_t>(1, row.count(column));
  };
  engine::Parallelism& parallel = scenario.parallel;
  parallel.tp = degree("tp");
  parallel.pp = degree("pp");
  parallel.cp = degree("cp");
  parallel.dp = degree("gpus") / (parallel.tp * parallel.pp * parallel.cp);
  engine::TrainSettings& train = scenario.train;
  train.sequence = scenario.model.max_context = benchmark.sequence;
  train.micro_batch = degree("mbs");
  train.global_batch = row.count("gbs");
  train.virtual_stages = degree("vp");
  if (train.virtual_stages > 1) train.schedule = engine::Schedule::interleaved;
  train.zero = row.count("zero");
  train.zero_group = row.count("zero_group");
  train.recompute = recompute_of(row);
  if (benchmark.name == "llama2_70b_lora") take_adapters(row, train);
  scenario.quant = {};
  if (row.text("format") == "bf16") return;
  const engine::Dtype narrow =
      row.text("format") == "int8" ? engine::Dtype::int8 : engine::Dtype::fp8;
  scenario.quant.weights = scenario.quant.activations = narrow;
  scenario.quant.group = kOneScale;
}

Result<TrainingRun> mlperf_run(const TableRow& row, NamedSpecs& specs) {
  TrainingRun run{.table = "published_mlperf_training"};
  run.model = row.text("benchmark");
  run.name = fmt::format("{} {}, {} {}, TP {} PP {} CP {}, {}", row.text("round"), run.model,
                         row.text("gpus"), row.text("device"), row.text("tp"), row.text("pp"),
                         row.text("cp"), row.text("format"));
  const auto benchmark = std::ranges::find(kBenchmarks, row.text("benchmark"), &Benchmark::name);
  if (benchmark == kBenchmarks.end()) {
    run.left_out = "a benchmark that is not known here";
    return run;
  }
  const double tokens = row.number("gbs") * double(benchmark->sequence);
  run.tokens_per_s_per_device = tokens / row.number("step_s") / row.number("gpus");
  const std::string_view name = settings_of(row, *benchmark);
  const engine::Scenario* settings = specs.find("training", name);
  if (settings == nullptr ||
      !take_device(specs, {row.text("device"), benchmark->model, host_of(name)}, run.scenario)) {
    return specs.mistakes();
  }
  run.scenario.train = settings->train;
  take_mlperf_settings(row, *benchmark, run.scenario);
  run.not_stated = "what a launch takes the host, formats of optimizer states";
  return run;
}

}  // namespace

Result<bool> add_mlperf_runs(const fs::path& data, NamedSpecs& specs,
                             std::vector<TrainingRun>& runs) {
  const auto table =
      results::read_table(data / "published_mlperf_training" / "mlperf_training.csv");
  if (!table) return table.mistakes();
  for (std::size_t i = 0; i < table->rows(); ++i) {
    auto run = mlperf_run(TableRow(*table, i), specs);
    if (!run) return run.mistakes();
    runs.push_back(std::move(*run));
  }
  return true;
}

}  // namespace tools

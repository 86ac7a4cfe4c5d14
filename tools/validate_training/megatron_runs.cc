#include "tools/validate_training/megatron_runs.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "results/text_table.h"
#include "tools/calibrate/tables/table_row.h"
#include "tools/validate_training/run_parts.h"

namespace tools {
namespace {

namespace fs = std::filesystem;
using engine::Dispatcher;
using engine::Recompute;
using engine::Result;

// Megatron's code on a host that is faster than ours: no table says what its hosts take for a launch.
constexpr std::string_view kMegatronHost = "megatron";
constexpr std::string_view kSettings = "megatron-bridge";

// What all recipes of a model have (Megatron-Bridge, scripts/performance/configs, releases of 2026), beside what all recipes have
// (specs/training/megatron-bridge.yaml). Those of Qwen3 do not pad in their routers (moe_router_padding_for_fp8: False), so that
// experts do. gpt-oss bounds its gates and adds a bias to each expert, for which that library has no kernel; and its rotations are
// scaled by YaRN, which that library's kernel for them does not do (Megatron-Core, apply_rotary_pos_emb).
struct Model {
  std::string_view name;  // letters and digits of the table's name
  std::string_view ours;
  bool tp_overlap = false;
  bool fused_experts = true;
  bool padded_experts = false;
  bool fused_rotation = true;
};
constexpr std::array<Model, 9> kModels = {{
    {"llama38b", "llama-3-8b", true},
    {"llama370b", "llama-3-70b", true},
    {"llama31405b", "llama-3.1-405b", true},
    {"gptoss20b", "gpt-oss-20b", false, false, false, false},
    {"gptoss120b", "gpt-oss-120b", false, false, false, false},
    {"qwen330ba3b", "qwen3-30b-a3b", false, true, true},
    {"qwen3235ba22b", "qwen3-235b-a22b", false, true, true},
    {"nemotron3nano", "nemotron-3-nano-30b-a3b", false, true, true},
    {"deepseekv3", "deepseek-v3"},
}};

// What recipes say by machine: of those that fit, the first one counts. Tokens go to experts by HybridEP, which moves them as DeepEP
// does, or by NCCL. Graphs, of whole steps or of parts of layers, and layers whose activations lie on the host are not said here.
struct Recipe {
  std::string_view model, machine, format;  // starts of names; empty: all
  Dispatcher dispatcher = Dispatcher::deepep;
  bool batch_overlap = false;  // moe_a2a_overlap
  Recompute recompute = Recompute::none;
};
constexpr auto kRecipes = std::to_array<Recipe>({
    {"gpt-oss", "DGX-GB300", "MXFP8", Dispatcher::deepep, true},
    {"gpt-oss", "DGX-GB300", "", Dispatcher::alltoall},
    {"gpt-oss", "DGX-GB200", "MXFP8", Dispatcher::deepep, true},
    {"gpt-oss", "DGX-GB200", "", Dispatcher::alltoall, true, Recompute::activations},
    {"gpt-oss", "DGX-B300", "MXFP8", Dispatcher::deepep, true},
    {"gpt-oss", "DGX-B300", "", Dispatcher::deepep},
    {"gpt-oss", "", "", Dispatcher::alltoall, false, Recompute::activations},
    {"qwen3-235b", "DGX-H100", "", Dispatcher::alltoall, true},
    {"qwen3-235b", "DGX-B", "", Dispatcher::alltoall},
    {"nemotron-3-nano", "DGX-H100", "FP8", Dispatcher::deepep, false,
     Recompute::experts_and_attention},
    {"nemotron-3-nano", "DGX-H100", "", Dispatcher::deepep, false, Recompute::experts},
    {"deepseek-v3", "DGX-GB300", "MXFP8", Dispatcher::deepep, true},
    {"deepseek-v3", "DGX-GB300", "BF16", Dispatcher::deepep, false, Recompute::activations},
    {"deepseek-v3", "DGX-GB300", "NVFP4", Dispatcher::deepep},
    {"deepseek-v3", "DGX-H100", "", Dispatcher::deepep, false, Recompute::up_projections},
    {"deepseek-v3", "", "MXFP8", Dispatcher::deepep, true, Recompute::up_projections},
    {"deepseek-v3", "", "", Dispatcher::deepep, false, Recompute::up_projections},
});

const Recipe& recipe_of(std::string_view model, std::string_view machine, std::string_view format) {
  static constexpr Recipe plain{};
  const auto found = std::ranges::find_if(kRecipes, [&](const Recipe& recipe) {
    return model.starts_with(recipe.model) && machine.starts_with(recipe.machine) &&
           format.starts_with(recipe.format);
  });
  return found == kRecipes.end() ? plain : *found;
}

// CS: one scale a tensor; SC: one for a block of 128; MX: one for 32 values.
struct Format {
  std::string_view name, known_as;
  engine::Dtype format;
  std::int64_t group;
};
constexpr auto kFormats = std::to_array<Format>({
    {"BF16", "BF16", engine::Dtype::bf16, 0},
    {"FP8", "FP8", engine::Dtype::fp8, kOneScale},
    {"FP8-CS", "FP8", engine::Dtype::fp8, kOneScale},
    {"FP8-SC", "FP8", engine::Dtype::fp8, 128},
    {"FP8-MX", "MXFP8", engine::Dtype::fp8, 32},
    {"MXFP8", "MXFP8", engine::Dtype::fp8, 32},
    {"NVFP4", "NVFP4", engine::Dtype::fp4, 16},
});

// A name as tables and documents spell it in several ways.
std::string letters_and_digits(std::string_view name) {
  std::string plain;
  for (const char letter : name) {
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0) {
      plain += char(std::tolower(static_cast<unsigned char>(letter)));
    }
  }
  return plain;
}

const Model* model_of(const TableRow& row) {
  const auto found =
      std::ranges::find(kModels, letters_and_digits(row.text("model")), &Model::name);
  return found == kModels.end() ? nullptr : &*found;
}

const Format* format_of(const TableRow& row) {
  std::string name(row.text("Precision"));
  std::ranges::replace(name, '_', '-');
  const auto found = std::ranges::find(kFormats, name, &Format::name);
  return found == kFormats.end() ? nullptr : &*found;
}

// Why a row cannot be predicted; empty: it can.
std::string unknown_part(const TableRow& row) {
  if (model_of(row) == nullptr) return "a model that is not known here";
  if (!is_known_machine(row.text("System"))) return "a machine that is not known here";
  if (format_of(row) == nullptr) return "a format that is not known here";
  return {};
}

void take_settings(const TableRow& row, TrainingRun& run) {
  engine::Scenario& scenario = run.scenario;
  engine::TrainSettings& train = scenario.train;
  const auto degree = [&](std::string_view column) {
    return std::max<std::int64_t>(1, row.count(column));
  };
  engine::Parallelism& parallel = scenario.parallel;
  parallel.tp = degree("TP");
  parallel.pp = degree("PP");
  parallel.cp = degree("CP");
  parallel.ep = degree("EP");
  parallel.dp = degree("#-GPUs") / (parallel.tp * parallel.pp * parallel.cp);
  train.sequence = row.count("Sequence Length");
  train.micro_batch = row.count("MBS");
  train.global_batch = row.count("GBS");
  train.virtual_stages = degree("VP");
  if (train.virtual_stages > 1) train.schedule = engine::Schedule::interleaved;
  const Model& model = *model_of(row);
  const Format& format = *format_of(row);
  const Recipe& recipe = recipe_of(model.ours, row.text("System"), format.known_as);
  train.tp_overlap = model.tp_overlap && parallel.tp > 1;
  train.fused_experts = model.fused_experts;
  train.padded_experts = model.padded_experts;
  train.fused_rotation = model.fused_rotation;
  train.dispatcher = recipe.dispatcher;
  train.batch_overlap = recipe.batch_overlap;
  train.recompute = recipe.recompute;
  if (degree("FSDP") > 1 || row.text("FSDP") == "1") train.zero = 3;
  scenario.model.max_context = std::max(scenario.model.max_context, train.sequence);
  if (format.format != engine::Dtype::bf16) {
    scenario.quant.weights = scenario.quant.activations = format.format;
    scenario.quant.group = format.group;
  }
  run.not_stated = "format of optimizer states, what a launch takes the host";
  // disable_parameter_transpose_cache: True in all recipes of fine-tuning.
  train.transpose_cache = row.text("section") == "Pre-Training Performance";
  if (row.text("section") == "LoRA Performance") {
    train.method = engine::Method::lora;
    train.lora_targets = engine::LoraTargets::qkv;  // peft.target_modules
    train.fused_loss = false;                       // cross_entropy_loss_fusion: False
    run.not_stated += ", packing";
  } else if (row.text("section") == "SFT Performance") {
    run.not_stated += ", packing";
  }
}

// One file a machine.
std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("pretrain_") && name.ends_with(".csv")) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  if (files.empty()) files.push_back(folder / "pretrain_h100.csv");  // whose absence is then told
  return files;
}

Result<TrainingRun> megatron_run(const TableRow& row, NamedSpecs& specs) {
  TrainingRun run{.table = "train_megatron_bridge"};
  run.model = row.text("model");
  run.name = fmt::format("{}, {} {} GPUs, TP {} PP {} EP {}, {}", run.model, row.text("Precision"),
                         row.text("#-GPUs"), row.text("TP"), row.text("PP"), row.text("EP"),
                         row.text("section"));
  run.tokens_per_s_per_device = row.number("Tokens / sec / GPU");
  run.left_out = unknown_part(row);
  if (!run.left_out.empty()) return run;
  const engine::Scenario* settings = specs.find("training", kSettings);
  if (settings == nullptr ||
      !take_parts(specs, {row.text("System"), model_of(row)->ours, kMegatronHost}, run.scenario)) {
    return specs.mistakes();
  }
  run.scenario.train = settings->train;
  take_settings(row, run);
  return run;
}

}  // namespace

Result<bool> add_megatron_runs(const fs::path& data, NamedSpecs& specs,
                               std::vector<TrainingRun>& runs) {
  for (const fs::path& file : files_of(data / "train_megatron_bridge")) {
    const auto table = results::read_table(file);
    if (!table) return table.mistakes();
    for (std::size_t i = 0; i < table->rows(); ++i) {
      auto run = megatron_run(TableRow(*table, i), specs);
      if (!run) return run.mistakes();
      runs.push_back(std::move(*run));
    }
  }
  return true;
}

}  // namespace tools

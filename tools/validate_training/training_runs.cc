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

namespace tools {
namespace {

namespace fs = std::filesystem;
using engine::Result;
using Names = std::pair<std::string_view, std::string_view>;  // in the table, in our library

// The host of our H200, and Megatron's code on a faster one: no table says what its hosts take for a launch.
constexpr std::string_view kHost = "pytorch-training", kMegatronHost = "megatron";
constexpr std::string_view kMegatronSettings = "megatron-bridge";

constexpr std::array<Names, 6> kMegatronModels = {{
    {"LLAMA3_70B", "llama-3-70b"},
    {"LLAMA3.1_405B", "llama-3.1-405b"},
    {"GPT OSS 120B", "gpt-oss-120b"},
    {"Qwen3_30B_a3B", "qwen3-30b-a3b"},
    {"Qwen3_235B_a22B", "qwen3-235b-a22b"},
    {"Nemotron_3_Nano", "nemotron-3-nano-30b-a3b"},
}};

// What the recipes of a model say beside the table's columns (Megatron-Bridge, scripts/performance/configs, releases of
// 2026, those for H100s) and what all recipes say (specs/training/megatron-bridge.yaml). Those of Qwen3 do not pad in their
// routers (moe_router_padding_for_fp8: False). gpt-oss bounds its gates and adds a bias to each expert, for which that library has no kernel; its norms and activations are
// computed again; and its rotations are scaled by YaRN, which that library's kernel for them does not do (Megatron-Core,
// apply_rotary_pos_emb).
struct Recipe {
  std::string_view model;
  bool tp_overlap;
  engine::Dispatcher dispatcher;
  bool batch_overlap;
  bool fused_experts;
  bool padded_experts;
  bool fused_rotation;
  engine::Recompute recompute;
};
constexpr std::array<Recipe, 6> kRecipes = {{
    {"LLAMA3_70B", true, engine::Dispatcher::deepep, false, true, false, true,
     engine::Recompute::none},
    {"LLAMA3.1_405B", true, engine::Dispatcher::deepep, false, true, false, true,
     engine::Recompute::none},
    {"GPT OSS 120B", false, engine::Dispatcher::alltoall, false, false, false, false,
     engine::Recompute::activations},
    {"Qwen3_30B_a3B", false, engine::Dispatcher::deepep, false, true, true, true,
     engine::Recompute::none},  // HybridEP, which moves tokens as DeepEP does
    {"Qwen3_235B_a22B", false, engine::Dispatcher::alltoall, true, true, true, true,
     engine::Recompute::none},
    // recompute_modules: moe, layernorm, core_attn, moe_act. Scans are launched as graphs, which is not said here.
    {"Nemotron_3_Nano", false, engine::Dispatcher::deepep, false, true, true, true,
     engine::Recompute::experts_and_attention},
}};

struct Machine {
  std::string_view name, device, link;
  std::int64_t devices_per_node = 8;
};
constexpr std::array<Machine, 7> kMachines = {{
    {"DGX-H100", "h100-sxm", "infiniband-ndr-400"},
    {"DGX-B200", "b200-sxm", "infiniband-ndr-400"},
    {"DGX-B300", "b300-sxm", "infiniband-xdr-800"},
    {"DGX-GB200", "gb200", "infiniband-ndr-400", 72},
    {"DGX-GB300", "gb300", "infiniband-xdr-800", 72},
    {"a100_80gb", "a100-80gb-sxm", "roce-200"},
    {"h100_80gb", "h100-sxm", "infiniband-ndr-400"},
}};
constexpr std::string_view kMachineOfRecipes = "DGX-H100";

struct Format {
  std::string_view name;
  engine::Dtype format;
  std::int64_t group;
};
constexpr std::array<Format, 4> kFormats = {{
    {"BF16", engine::Dtype::bf16, 0},
    {"FP8", engine::Dtype::fp8, kOneScale},
    {"MXFP8", engine::Dtype::fp8, 32},
    {"NVFP4", engine::Dtype::fp4, 16},
}};

// The parts of a scenario that are named in our library; false: one is missing.
struct PartNames {
  std::string_view machine, model, host;
};
bool take_parts(NamedSpecs& specs, const PartNames& names, engine::Scenario& scenario) {
  const auto found = std::ranges::find(kMachines, names.machine, &Machine::name);
  if (found == kMachines.end()) return false;
  const engine::Scenario* device = specs.find("devices", found->device);
  const engine::Scenario* link = specs.find("links", found->link);
  const engine::Scenario* shape = specs.find("models", names.model);
  const engine::Scenario* host = specs.find("hosts", names.host);
  if (device == nullptr || link == nullptr || shape == nullptr || host == nullptr) return false;
  scenario.task = engine::Task::train;
  scenario.device = device->device;
  scenario.model = shape->model;
  scenario.host = host->host;
  scenario.cluster.devices_per_node = found->devices_per_node;
  scenario.cluster.scale_out = link->device.scale_up;
  return true;
}

void take_megatron_settings(const TableRow& row, TrainingRun& run) {
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
  if (const auto recipe = std::ranges::find(kRecipes, run.model, &Recipe::model);
      recipe != kRecipes.end()) {
    train.tp_overlap = recipe->tp_overlap && parallel.tp > 1;
    train.dispatcher = recipe->dispatcher;
    train.batch_overlap = recipe->batch_overlap;
    train.fused_experts = recipe->fused_experts;
    train.padded_experts = recipe->padded_experts;
    train.fused_rotation = recipe->fused_rotation;
    train.recompute = recipe->recompute;
  }
  scenario.model.max_context = std::max(scenario.model.max_context, train.sequence);
  if (const auto format = std::ranges::find(kFormats, row.text("Precision"), &Format::name);
      format->format != engine::Dtype::bf16) {
    scenario.quant.weights = scenario.quant.activations = format->format;
    scenario.quant.group = format->group;
  }
  run.not_stated = "format of optimizer states, what a launch takes the host";
  if (row.text("System") != kMachineOfRecipes) run.not_stated += ", its recipe";
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
std::vector<fs::path> megatron_files(const fs::path& folder) {
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

// Why a row cannot be predicted; empty: it can.
std::string unknown_part(const TableRow& row) {
  if (std::ranges::find(kMegatronModels, row.text("model"), &Names::first) ==
      kMegatronModels.end()) {
    return "a model that the library does not have";
  }
  if (std::ranges::find(kMachines, row.text("System"), &Machine::name) == kMachines.end()) {
    return "a machine that is not known here";
  }
  if (std::ranges::find(kFormats, row.text("Precision"), &Format::name) == kFormats.end()) {
    return "a format that is not known here";
  }
  return {};
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
  const auto model = std::ranges::find(kMegatronModels, run.model, &Names::first);
  const engine::Scenario* settings = specs.find("training", kMegatronSettings);
  if (settings == nullptr ||
      !take_parts(specs, {row.text("System"), model->second, kMegatronHost}, run.scenario)) {
    return specs.mistakes();
  }
  run.scenario.train = settings->train;
  take_megatron_settings(row, run);
  return run;
}

Result<bool> add_megatron_runs(const fs::path& data, NamedSpecs& specs,
                               std::vector<TrainingRun>& runs) {
  for (const fs::path& file : megatron_files(data / "train_megatron_bridge")) {
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
  for (const auto add : {add_megatron_runs, add_mosaic_runs}) {
    const auto added = add(data, specs, runs);
    if (!added) return added.mistakes();
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

#include "tools/validate_serving/overview_cases.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "results/text_table.h"
#include "tools/calibrate/tables/table_row.h"
#include "tools/validate_serving/served_parts.h"

namespace tools {
namespace {

namespace fs = std::filesystem;

constexpr std::array<Names, 8> kModels = {{
    {"Llama-3.1-8B", "llama-3.1-8b"},
    {"Llama-3.3-70B", "llama-3.3-70b"},
    {"Llama-3.1-405B", "llama-3.1-405b"},
    {"Llama-4-Scout-17B-16E", "llama-4-scout"},
    {"Llama-4-Maverick-17B-128E", "llama-4-maverick"},
    {"Qwen3-235B-A22B", "qwen3-235b-a22b"},
    {"GPT-OSS-20B", "gpt-oss-20b"},
    {"GPT-OSS-120B", "gpt-oss-120b"},
}};

constexpr std::array<NamedMachine, 5> kMachines = {{
    {"A100", "a100-80gb-sxm", "dgx-a100"},
    {"H100", "h100-sxm", "dgx-h100"},
    {"H200", "h200-sxm", "dgx-h200"},
    {"B200", "b200-sxm", "dgx-b200"},
    {"GB200", "gb200", "gb200-nvl72"},
}};

// "TP4PP2": tensor and pipeline parallel; "DEP4": attention on four replicas, experts spread over them. The published
// options set `enable_attention_dp` for every mixture, so "TP8" of one is eight such replicas, too.
std::optional<engine::Parallelism> parallel_of(std::string_view text, bool mixture) {
  const auto number_after = [&](std::string_view word) -> std::optional<std::int64_t> {
    const std::size_t place = text.find(word);
    if (place == std::string_view::npos) return std::nullopt;
    std::int64_t number = 0;
    const std::string_view digits = text.substr(place + word.size());
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return error == std::errc() ? std::optional(number) : std::nullopt;
  };
  engine::Parallelism parallel;
  if (const auto replicas = number_after("DEP")) {
    parallel.dp = parallel.ep = *replicas;
    return parallel;
  }
  const auto tensor = number_after("TP");
  if (!tensor) return std::nullopt;
  parallel.pp = number_after("PP").value_or(1);
  if (mixture) {
    parallel.dp = parallel.ep = *tensor;
  } else {
    parallel.tp = *tensor;
  }
  return parallel;
}

bool is_gpt_oss(std::string_view model) { return model.starts_with("GPT-OSS"); }

// Formats of the published checkpoint. The KV cache is `auto`: fp8 where the checkpoint carries scales for it, as those of
// dense models do. gpt-oss has none (on Blackwell the options ask for fp8 by name), and the rows of the other mixtures
// hold no more sequences than a cache of 16 bits does.
std::optional<engine::Quantization> quant_of(std::string_view format, std::string_view model,
                                             bool mixture) {
  using engine::Dtype;
  constexpr std::int64_t whole_matrix = 1'000'000;
  // Published in MXFP4, experts only; the rest, and the arithmetic before Blackwell, has 16 bits.
  if (is_gpt_oss(model)) {
    const bool blackwell = format == "FP4" || format == "NVFP4";
    return engine::Quantization{.weights = Dtype::fp4,
                                .kv = blackwell ? Dtype::fp8 : Dtype::bf16,
                                .group = 32,
                                .scope = engine::QuantScope::experts};
  }
  if (format == "FP8") {
    return engine::Quantization{.weights = Dtype::fp8,
                                .activations = Dtype::fp8,
                                .kv = mixture ? Dtype::bf16 : Dtype::fp8,
                                .group = whole_matrix};
  }
  if (format == "FP4" || format == "NVFP4") {
    return engine::Quantization{
        .weights = Dtype::fp4, .activations = Dtype::fp4, .kv = Dtype::fp8, .group = 16};
  }
  if (format == "BF16" || format == "FP16") return engine::Quantization{};
  return std::nullopt;
}

// Seats and tokens a step that trtllm-bench sets where nobody states them (tensorrt_llm/bench/build/tuning.py): as many
// requests as the memory beside the weights would hold, every layer's cache in full, rounded up. Prompts are not cut.
void set_bench_limits(std::string_view model_name, engine::Scenario& scenario) {
  const engine::ModelSpec& model = scenario.model;
  const engine::ParameterCounts counts = engine::parameter_counts(model);
  const engine::Parallelism& layout = scenario.parallel;
  const double devices = double(layout.tp * layout.dp * layout.pp);
  // It takes an element of MXFP4, of which two share a byte and 32 a scale, for one of 16 bits.
  const double weights =
      is_gpt_oss(model_name)
          ? 2 * (counts.total() - counts.experts) + counts.experts * (1 + 1 / 16.)
          : counts.total() * engine::bytes_of(scenario.quant.weights);
  const double token = 2 * double(model.layers) *
                       std::max(devices / double(layout.pp), double(model.kv_heads)) *
                       double(model.head_dim) * engine::bytes_of(scenario.quant.kv);
  const double free = devices * scenario.device.memory_capacity.value - weights;
  const double prompt = double(scenario.load.lengths.prompt);
  const double output = double(scenario.load.lengths.output);
  const double requests =
      std::min(4096., free * scenario.serving.memory_utilization / (token * (prompt + output))) /
      double(layout.pp);
  const double tokens = std::min(32768., requests * (1 + prompt / output));
  const auto up_to = [](double value, double step) {
    return std::int64_t(step * std::ceil(value / step));
  };
  engine::ServingSettings& serving = scenario.serving;
  serving.max_num_seqs = std::max<std::int64_t>(64, up_to(requests, requests < 256    ? 32
                                                                    : requests < 1024 ? 128
                                                                                      : 256));
  serving.max_num_batched_tokens = std::max({std::int64_t(2048),
                                             up_to(tokens, tokens < 4096   ? 256
                                                           : tokens < 8192 ? 512
                                                                           : 1024),
                                             scenario.load.lengths.prompt + serving.max_num_seqs});
}

// Decodes are padded up to the next size of the published options; sizes beyond the seats become as many as there are.
std::string captured_sizes(std::int64_t seats) {
  std::string sizes;
  for (const std::int64_t size :
       {1, 2, 4, 8, 16, 32, 64, 128, 256, 384, 512, 1024, 2048, 4096, 8192}) {
    if (size < seats) sizes += fmt::format("{} ", size);
  }
  return sizes + std::to_string(seats);
}

struct Row {
  const TableRow& cells;
  NamedSpecs& specs;
};

// The scenario of a row; what it lacks goes to `left_out`.
engine::Result<engine::Scenario> scenario_of(const Row& row, std::string& left_out) {
  engine::Scenario scenario;
  const std::string_view model_name = row.cells.text("model");
  const auto model = std::ranges::find(kModels, model_name, &Names::first);
  const auto machine = std::ranges::find(kMachines, row.cells.text("gpu"), &NamedMachine::name);
  if (model == kModels.end()) left_out = fmt::format("model '{}'", model_name);
  if (machine == kMachines.end()) left_out = fmt::format("device '{}'", row.cells.text("gpu"));
  if (!left_out.empty()) return scenario;
  auto parts = served_scenario(row.specs, {.model = model->second,
                                           .device = machine->device,
                                           .cluster = machine->cluster,
                                           .serving = "tensorrt-llm",
                                           .host = "tensorrt-llm-offline"});
  if (!parts) return parts.mistakes();
  const bool mixture = parts->model.is_moe();
  const auto quant = quant_of(row.cells.text("weight_dtype"), model_name, mixture);
  const auto parallel = parallel_of(row.cells.text("parallel"), mixture);
  if (!quant) left_out = fmt::format("format '{}'", row.cells.text("weight_dtype"));
  if (!parallel) left_out = fmt::format("layout '{}'", row.cells.text("parallel"));
  if (!left_out.empty()) return scenario;
  scenario = std::move(parts).value();
  scenario.quant = *quant;
  scenario.parallel = *parallel;
  scenario.load =
      all_at_once(row.cells.count("num_requests"), row.cells.count("isl"), row.cells.count("osl"));
  scenario.serving.memory_utilization =
      0.95;  // their usual choice; they fell back to 0.90 or less where memory ran out
  set_bench_limits(model_name, scenario);
  // Until November 2025 only where more devices share the experts than a token goes to (TensorRT-LLM's pull request 8950).
  if (scenario.parallel.ep <= scenario.model.moe.top_k) {
    scenario.serving.expert_exchange = engine::ExpertTravel::gathered;
  }
  scenario.host.captured_sizes = captured_sizes(scenario.serving.max_num_seqs);
  scenario.host.largest_graph = scenario.serving.max_num_seqs;
  return scenario;
}

}  // namespace

engine::Result<std::vector<ServedCase>> overview_cases(const fs::path& folder,
                                                       const sweep::Library& library) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".csv") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  NamedSpecs specs(library);
  std::vector<ServedCase> cases;
  for (const fs::path& file : files) {
    const auto table = results::read_table(file);
    if (!table) return table.mistakes();
    for (const char* column : {"model", "gpu", "parallel", "weight_dtype", "isl", "osl",
                               "num_requests", "output_tps_total"}) {
      if (!table->find(column)) {
        return engine::Mistake{{file.string(), 1, 1},
                               fmt::format("the table has no column '{}'", column),
                               "trtllm_perf_overview/SOURCE.md says what is in it"};
      }
    }
    for (std::size_t i = 0; i < table->rows(); ++i) {
      const TableRow row(*table, i);
      ServedCase served{.source = "trtllm_perf_overview",
                        .id = fmt::format("{} {} {} {}+{}", row.text("gpu"), row.text("model"),
                                          row.text("parallel"), row.text("isl"), row.text("osl")),
                        .engine = "trtllm",
                        .version = std::string(row.text("doc")),
                        .output_rate = row.number("output_tps_total")};
      auto scenario = scenario_of({row, specs}, served.left_out);
      if (!scenario) return scenario.mistakes();
      served.scenario = std::move(scenario).value();
      cases.push_back(std::move(served));
    }
  }
  return cases;
}

}  // namespace tools

#include "tools/validate_serving/overview_cases.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "results/text_table.h"
#include "tools/calibrate/tables/table_row.h"
#include "tools/validate_serving/named_specs.h"

namespace tools {
namespace {

namespace fs = std::filesystem;
using Names = std::pair<std::string_view, std::string_view>;  // in the table, in our library

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

struct Machine {
  std::string_view name, device, cluster;
};
constexpr std::array<Machine, 5> kMachines = {{
    {"A100", "a100-80gb-sxm", "dgx-a100"},
    {"H100", "h100-sxm", "dgx-h100"},
    {"H200", "h200-sxm", "dgx-h200"},
    {"B200", "b200-sxm", "dgx-b200"},
    {"GB200", "gb200", "gb200-nvl72"},
}};

// "TP4PP2": tensor and pipeline parallel; "DEP4": attention on four replicas, experts spread over them.
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
  parallel.tp = *tensor;
  parallel.pp = number_after("PP").value_or(1);
  if (mixture) parallel.ep = *tensor;
  return parallel;
}

std::optional<engine::Quantization> quant_of(std::string_view format, std::string_view model) {
  using engine::Dtype;
  constexpr std::int64_t whole_matrix = 1'000'000;
  // Published in MXFP4, experts only; the rest, and the arithmetic before Blackwell, has 16 bits.
  if (model.starts_with("GPT-OSS")) {
    return engine::Quantization{
        .weights = Dtype::fp4, .kv = Dtype::fp8, .group = 32, .scope = engine::QuantScope::experts};
  }
  if (format == "FP8") {
    return engine::Quantization{
        .weights = Dtype::fp8, .activations = Dtype::fp8, .kv = Dtype::fp8, .group = whole_matrix};
  }
  if (format == "FP4" || format == "NVFP4") {
    return engine::Quantization{
        .weights = Dtype::fp4, .activations = Dtype::fp4, .kv = Dtype::fp8, .group = 16};
  }
  if (format == "BF16" || format == "FP16") return engine::Quantization{};
  return std::nullopt;
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
  const auto machine = std::ranges::find(kMachines, row.cells.text("gpu"), &Machine::name);
  const auto quant = quant_of(row.cells.text("weight_dtype"), model_name);
  if (model == kModels.end()) left_out = fmt::format("model '{}'", model_name);
  if (machine == kMachines.end()) left_out = fmt::format("device '{}'", row.cells.text("gpu"));
  if (!quant) left_out = fmt::format("format '{}'", row.cells.text("weight_dtype"));
  if (!left_out.empty()) return scenario;
  const engine::Scenario* model_spec = row.specs.find("models", model->second);
  const engine::Scenario* device = row.specs.find("devices", machine->device);
  const engine::Scenario* cluster = row.specs.find("clusters", machine->cluster);
  const engine::Scenario* serving = row.specs.find("serving", "tensorrt-llm");
  const engine::Scenario* host = row.specs.find("hosts", "tensorrt-llm-offline");
  if (!model_spec || !device || !cluster || !serving || !host) return row.specs.mistakes();
  const auto parallel = parallel_of(row.cells.text("parallel"), model_spec->model.is_moe());
  if (!parallel) {
    left_out = fmt::format("layout '{}'", row.cells.text("parallel"));
    return scenario;
  }
  scenario.task = engine::Task::serve;
  scenario.model = model_spec->model;
  scenario.device = device->device;
  scenario.cluster = cluster->cluster;
  scenario.serving = serving->serving;
  scenario.host = host->host;
  scenario.quant = *quant;
  scenario.parallel = *parallel;
  scenario.load.arrivals = engine::ArrivalKind::deterministic;
  scenario.load.rate = engine::RequestsPerSecond{1e6};  // all at once
  scenario.load.requests = row.cells.count("num_requests");
  scenario.load.measure = engine::MeasureKind::whole;  // as its client counts
  scenario.load.lengths.prompt = row.cells.count("isl");
  scenario.load.lengths.output = row.cells.count("osl");
  // Prompts are not cut: one has to fit beside the decodes.
  std::int64_t& budget = scenario.serving.max_num_batched_tokens;
  budget = std::max(budget, scenario.load.lengths.prompt + scenario.serving.max_num_seqs);
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

#include "tools/validate_serving/argonne_cases.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "results/text_table.h"
#include "tools/calibrate/tables/table_row.h"
#include "tools/validate_serving/served_parts.h"

namespace tools {
namespace {

constexpr std::array<Names, 11> kBatchModels = {{
    {"meta-llama/Llama-2-7b-hf", "llama-2-7b"},
    {"meta-llama/Llama-2-70b-hf", "llama-2-70b"},
    {"meta-llama/Meta-Llama-3-8B", "llama-3-8b"},
    {"meta-llama/Meta-Llama-3-70B", "llama-3-70b"},
    {"mistralai/Mistral-7B-v0.1", "mistral-7b"},
    {"mistralai/Mixtral-8x7B-v0.1", "mixtral-8x7b"},
    {"Qwen/Qwen2-7B", "qwen2-7b"},
    {"Qwen/Qwen2-72B", "qwen2-72b"},
    {"huggyllama/llama-7b", "llama-7b"},
    {"EleutherAI/gpt-j-6b", "gpt-j-6b"},
    {"facebook/opt-6.7b", "opt-6.7b"},
}};

// Four GPUs a node, joined pair by pair. The A100s have 40 GB: 70 B parameters leave room for few sequences there.
constexpr std::array<NamedMachine, 2> kBatchMachines = {{
    {"Nvidia A100 GPU", "a100-40gb-sxm", "hgx-a100-4gpu"},
    {"Nvidia H100 GPU", "h100-sxm", "hgx-h100-4gpu"},
}};

struct BatchEngine {
  std::string_view name;
  std::string_view label;  // as other tables call it
  std::string_view serving;
  std::string_view host;           // on one device
  std::string_view host_of_group;  // on several
};
constexpr std::array<BatchEngine, 2> kBatchEngines = {{
    {"TensorRT-LLM", "trtllm", "tensorrt-llm-2024", "tensorrt-llm-2024", "tensorrt-llm-2024"},
    {"vLLM", "vllm", "vllm-v0", "vllm-v0", "vllm-v0-workers"},
}};

// vLLM before V1 lets as many tokens into a step as the model's context has; beyond this it cuts prompts.
constexpr std::int64_t kLongestWholePrompt = 32768;

// Seconds in which the devices could at best read the weights of every token, one sequence at a time.
double least_time(const engine::Scenario& scenario) {
  const double bytes =
      engine::active_parameters(scenario.model) * engine::bytes_of(scenario.quant.weights);
  return double(scenario.load.lengths.output) * bytes /
         (double(scenario.parallel.tp) * scenario.device.memory_bandwidth.value);
}

// The scenario of a row; what it lacks goes to `left_out`.
engine::Result<engine::Scenario> scenario_of(const TableRow& row, NamedSpecs& specs,
                                             std::string& left_out) {
  engine::Scenario scenario;
  const auto model = std::ranges::find(kBatchModels, row.text("Model"), &Names::first);
  const auto machine = std::ranges::find(kBatchMachines, row.text("Hardware"), &NamedMachine::name);
  const auto framework =
      std::ranges::find(kBatchEngines, row.text("Framework"), &BatchEngine::name);
  if (model == kBatchModels.end()) left_out = fmt::format("model '{}'", row.text("Model"));
  if (machine == kBatchMachines.end()) left_out = fmt::format("device '{}'", row.text("Hardware"));
  if (framework == kBatchEngines.end())
    left_out = fmt::format("engine '{}'", row.text("Framework"));
  if (!left_out.empty()) return scenario;
  const std::int64_t devices = row.count("Num of Hardware");
  auto parts =
      served_scenario(specs, {.model = model->second,
                              .device = machine->device,
                              .cluster = machine->cluster,
                              .serving = framework->serving,
                              .host = devices > 1 ? framework->host_of_group : framework->host});
  if (!parts) return parts.mistakes();
  scenario = std::move(parts).value();
  scenario.quant = {.weights = engine::Dtype::fp16,
                    .activations = engine::Dtype::fp16,
                    .kv = engine::Dtype::fp16};
  scenario.parallel.tp = devices;
  const std::int64_t length = row.count("Input Output Length");
  scenario.load = all_at_once(row.count("Batch Size"), length, length);
  if (framework->label == "vllm") {
    scenario.serving.max_num_batched_tokens =
        std::clamp(scenario.model.max_context, std::int64_t(2048), kLongestWholePrompt);
  } else if (scenario.model.is_moe()) {
    left_out = "sequences of one text, which meet the same experts";
  }
  if (row.number("Latency") < least_time(scenario)) left_out = "faster than weights can be read";
  return scenario;
}

}  // namespace

engine::Result<std::vector<ServedCase>> argonne_cases(const std::filesystem::path& file,
                                                      const sweep::Library& library) {
  const auto table = results::read_table(file);
  if (!table) return table.mistakes();
  for (const char* column : {"Hardware", "Num of Hardware", "Framework", "Model",
                             "Input Output Length", "Batch Size", "Latency"}) {
    if (!table->find(column)) {
      return engine::Mistake{{file.string(), 1, 1},
                             fmt::format("the table has no column '{}'", column),
                             "argonne_llm_inference_bench/SOURCE.md says what is in it"};
    }
  }
  NamedSpecs specs(library);
  std::vector<ServedCase> cases;
  for (std::size_t i = 0; i < table->rows(); ++i) {
    const TableRow row(*table, i);
    const auto framework =
        std::ranges::find(kBatchEngines, row.text("Framework"), &BatchEngine::name);
    ServedCase served{
        .source = "argonne_llm_inference_bench",
        .id =
            fmt::format("{} x{} {} {} batch {}", row.text("Hardware"), row.text("Num of Hardware"),
                        row.text("Model"), row.text("Input Output Length"), row.text("Batch Size")),
        .engine = std::string(framework == kBatchEngines.end() ? row.text("Framework")
                                                               : framework->label),
        // Tokens that were written, over the time of the batch; the table's own throughput counts prompts, too.
        .output_rate =
            row.number("Input Output Length") * row.number("Batch Size") / row.number("Latency")};
    auto scenario = scenario_of(row, specs, served.left_out);
    if (!scenario) return scenario.mistakes();
    served.scenario = std::move(scenario).value();
    cases.push_back(std::move(served));
  }
  return cases;
}

}  // namespace tools

#include "tools/validate_serving/silicon_cases.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "results/text_table.h"
#include "tools/calibrate/tables/table_row.h"
#include "tools/validate_serving/disagg_recipes.h"
#include "tools/validate_serving/served_parts.h"

namespace tools {
namespace {

struct ModelName {
  std::string_view path;  // as the table has it
  std::string_view name;  // in our library
  // The published checkpoint is in fp8 with a scale for 128 values, whichever fp8 the table states.
  bool in_blocks = false;
  // TensorRT-LLM had one seat less than clients: its first tokens take the longer the longer answers are, by an answer over the
  // number of clients.
  bool one_waits = false;
};
constexpr std::array<ModelName, 8> kModelPaths = {{
    {"Qwen/Qwen3-32B", "qwen3-32b"},
    {"Qwen/Qwen3-235B-A22B-FP8", "qwen3-235b-a22b", true},
    {"meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b", false, true},
    {"meta-llama/Llama-3.1-70B", "llama-3.1-70b"},
    {"deepseek-ai/DeepSeek-R1", "deepseek-r1", true},
    {"deepseek-ai/DeepSeek-V3", "deepseek-v3", true},
    {"openai/gpt-oss-120b", "gpt-oss-120b"},
    {"MiniMaxAI/MiniMax-M2.5", "minimax-m2", true},
}};

auto model_of(const TableRow& row) {
  return std::ranges::find(kModelPaths, row.text("model_path"), &ModelName::path);
}

// A scale for a whole matrix, as opposed to one for 128 values.
constexpr std::int64_t kWholeMatrix = 1'000'000;

bool disaggregated(const TableRow& row) { return row.text("mode") == "disagg"; }

// Ids that begin with a date are runs of a public benchmark that draws lengths evenly from 80 to 100% of the stated ones and asks
// for the likeliest token. So are all in two pools: those without a date repeat the figures of dated ones to the last digit. The
// others have fixed lengths and leave sampling to the model's published defaults.
bool of_public_benchmark(const TableRow& row) {
  const std::string_view id = row.text("id");
  return disaggregated(row) ||
         (id.size() > 4 && std::all_of(id.begin(), id.begin() + 4,
                                       [](unsigned char c) { return std::isdigit(c) != 0; }));
}

// A count that may be left empty.
std::int64_t at_least_one(const TableRow& row, std::string_view column) {
  return std::max<std::int64_t>(1, row.count(column));
}

engine::Load load_of(const TableRow& row) {
  engine::Load load;
  load.arrivals = engine::ArrivalKind::closed;
  load.clients = row.count("concurrency");
  load.requests = 10 * load.clients;  // the default of both clients, which count all of them
  load.measure = engine::MeasureKind::whole;
  load.lengths.prompt = row.count("isl");
  load.lengths.output = row.count("osl");
  if (of_public_benchmark(row)) {
    load.lengths.distribution = engine::LengthKind::uniform;
    const auto mean = [](std::int64_t most) {
      return std::int64_t(std::lround(0.9 * double(most)));
    };
    load.lengths.prompt = mean(load.lengths.prompt);
    load.lengths.output = mean(load.lengths.output);
    // The standard deviation of an even spread is its width over the root of twelve.
    load.lengths.prompt_cv = load.lengths.output_cv = 0.2 / 0.9 / std::sqrt(12.0);
  }
  return load;
}

std::optional<engine::Quantization> quant_of(const TableRow& row) {
  using engine::Dtype;
  const std::string_view mode = row.text("gemm_quant_mode");
  const std::string_view model = row.text("model_path");
  const bool trtllm = row.text("backend") == "trtllm";
  if (mode.empty()) return engine::Quantization{};
  const auto named = model_of(row);
  const bool blocks = mode == "fp8_block" || (named != kModelPaths.end() && named->in_blocks);
  if (mode == "fp8" || mode == "fp8_block") {
    return engine::Quantization{.weights = Dtype::fp8,
                                .activations = Dtype::fp8,
                                // Checkpoints for TensorRT-LLM with one scale a matrix carry scales
                                // for an fp8 cache, and it uses them.
                                .kv = trtllm && !blocks ? Dtype::fp8 : Dtype::bf16,
                                .group = blocks ? 128 : kWholeMatrix};
  }
  if (model.starts_with("openai/gpt-oss")) {
    // Written as nvfp4; published in MXFP4, experts only, and Hopper computes in 16 bits.
    return engine::Quantization{
        .weights = Dtype::fp4, .group = 32, .scope = engine::QuantScope::experts};
  }
  return std::nullopt;
}

// Whether an engine release waits for the host in every step; vLLM stopped in 0.14.
bool synchronous(std::string_view engine, std::string_view version) {
  if (engine != "vllm" || version.empty()) return false;
  int major = 0, minor = 0;
  const std::size_t dot = version.find('.');
  std::from_chars(version.data(), version.data() + std::min(dot, version.size()), major);
  if (dot != std::string_view::npos) {
    std::from_chars(version.data() + dot + 1, version.data() + version.size(), minor);
  }
  return major == 0 && minor < 14;
}

std::string reason_to_leave_out(const TableRow& row,
                                const std::optional<engine::Quantization>& quant) {
  if (row.text("concurrency").empty()) return "no concurrency stated";
  if (!quant) return "formats not modelled";
  if (disaggregated(row)) return {};
  const std::int64_t replicas = std::max<std::int64_t>(1, row.count("attention_dp_size"));
  if (replicas > 1) {
    // They need 16 devices by their columns, and take as long as the rows with 4 to a percent, even
    // where the KV cache is full.
    return "layout contradicts its times";
  }
  if (row.count("batch_size") != row.count("concurrency")) return "number of replicas not stated";
  return {};
}

// The layout of the columns that begin with `pool`. Rows that leave experts open spread them over all.
engine::Parallelism layout_of(const TableRow& row, const std::string& pool,
                              const engine::ModelSpec& model) {
  engine::Parallelism parallel;
  parallel.tp = at_least_one(row, pool + "tp_size");
  parallel.pp = at_least_one(row, pool + "pp_size");
  parallel.dp = at_least_one(row, pool + "attention_dp_size");
  if (!model.is_moe()) return parallel;
  parallel.ep = at_least_one(row, pool + "moe_ep_size");
  if (parallel.dp > 1 && parallel.ep == 1) parallel.ep = parallel.dp * parallel.tp;
  parallel.expert_copies =
      engine::ExpertCopies::fewest;  // rows state no balancer, and engines start none by themselves
  return parallel;
}

constexpr std::int64_t kLeastBudget = 2048;  // tokens of prompts in a step

// Bandwidth of each device between the nodes of disaggregated rows, whose network is not stated. It is read off one row, the first tokens
// of four clients with 8,192 tokens each under SGLang: with the 400 Gb/s of a DGX H100 they come at 0.50 s, with 100 Gb/s at 0.86, as
// measured.
constexpr engine::BytesPerSecond kBetweenNodes{12.5e9};

// The scenarios of public recipes that a disaggregated row may be of; none where nobody published one for so many clients.
std::vector<engine::Scenario> recipes_of(const TableRow& row, const engine::Scenario& scenario) {
  auto recipes = row.text("backend") == "sglang" ? sglang_recipes(scenario)
                                                 : trtllm_recipes(scenario, row.count("isl"));
  // Rows that state their workers had no drafts.
  if (!row.text("decode_num_workers").empty()) {
    std::erase_if(recipes, [](const engine::Scenario& one) { return one.speculation.tokens > 0; });
  }
  return recipes;
}

engine::Result<engine::Scenario> scenario_of(const TableRow& row, const engine::Quantization& quant,
                                             NamedSpecs& specs) {
  const std::string_view backend = row.text("backend");
  const bool waits = synchronous(backend, row.text("backend_version"));
  const std::string_view engine_name = backend == "trtllm" ? "tensorrt-llm"
                                       : backend != "vllm" ? "sglang"
                                       : waits             ? "vllm-v1-2025"
                                                           : "vllm-v1";
  // All recipes for two pools of TensorRT-LLM set TRTLLM_ENABLE_PDL, which later releases do by themselves.
  const bool merges_nothing = row.text("backend_version").starts_with("1.0");
  const std::string_view host_name = waits ? "vllm-v1-synchronous"
                                     : backend == "trtllm" && merges_nothing && !disaggregated(row)
                                         ? "tensorrt-llm-2025"
                                         : engine_name;
  const auto model = model_of(row);
  if (model == kModelPaths.end()) {
    return engine::Mistake{{}, fmt::format("unknown model '{}'", row.text("model_path")), ""};
  }
  auto parts =
      served_scenario(specs, {.model = model->name,
                              .device = "h100-sxm",
                              .cluster = disaggregated(row) ? "dgx-h100-32-nodes" : "dgx-h100",
                              .serving = engine_name,
                              .host = host_name});
  if (!parts) return parts.mistakes();
  engine::Scenario scenario = std::move(parts).value();
  scenario.quant = quant;
  scenario.load = load_of(row);
  scenario.parallel = layout_of(row, disaggregated(row) ? "decode_" : "", scenario.model);
  if (disaggregated(row)) {
    scenario.cluster.scale_out.bandwidth = kBetweenNodes;
    scenario.serving.replicas = at_least_one(row, "decode_num_workers");
    scenario.prefill.present = true;
    engine::fill_roles(scenario);
    engine::Deployment& readers = scenario.prefill.deployment;
    readers.parallel = layout_of(row, "prefill_", scenario.model);
    readers.serving.replicas = at_least_one(row, "prefill_num_workers");
    return scenario;
  }
  if (of_public_benchmark(row)) {
    // The benchmark's script for gpt-oss on H100 asks for Marlin (VLLM_MXFP4_USE_MARLIN=1).
    if (backend == "vllm") scenario.serving.four_bit_experts = engine::FourBitExperts::marlin;
    return scenario;
  }
  // The token budget is not stated; it follows the prompt, and how was chosen on these rows: one and a half
  // of them under vLLM, which reads prompts in pieces, two (no fewer than 2,048 tokens) and a token a client under
  // TensorRT-LLM.
  const std::int64_t prompt = row.count("isl");
  if (backend == "trtllm") {
    if (model->one_waits) {
      scenario.serving.max_num_seqs = std::max<std::int64_t>(1, scenario.load.clients - 1);
    }
    scenario.serving.max_num_batched_tokens =
        std::max<std::int64_t>(2 * prompt, kLeastBudget) + scenario.load.clients;
  }
  if (waits) {
    scenario.serving.max_num_batched_tokens = prompt * 3 / 2;
    // Qwen3's published defaults are top-k and top-p; vLLM of that time sorted for them, the other two
    // engines have kernels that do not.
    scenario.serving.sampling = engine::Sampling::sorted;
  }
  return scenario;
}

}  // namespace

engine::Result<std::vector<ServedCase>> silicon_cases(const std::filesystem::path& file,
                                                      const sweep::Library& library) {
  const auto table = results::read_table(file);
  if (!table) return table.mistakes();
  for (const char* column : {"id", "backend", "model_path", "mode", "isl", "osl", "gemm_quant_mode",
                             "tp_size", "concurrency", "silicon_ttft_ms", "silicon_tpot_ms"}) {
    if (!table->find(column)) {
      return engine::Mistake{{file.string(), 1, 1},
                             fmt::format("the table has no column '{}'", column),
                             "silicon_e2e/SOURCE.md says what is in it"};
    }
  }
  NamedSpecs specs(library);
  std::vector<ServedCase> cases;
  for (std::size_t i = 0; i < table->rows(); ++i) {
    const TableRow row(*table, i);
    const auto quant = quant_of(row);
    ServedCase served{.source = "silicon_e2e",
                      .id = std::string(row.text("id")),
                      .engine = std::string(row.text("backend")),
                      .version = std::string(row.text("backend_version")),
                      .ttft = row.number("silicon_ttft_ms") * 1e-3,
                      .tpot = row.number("silicon_tpot_ms") * 1e-3,
                      .left_out = reason_to_leave_out(row, quant)};
    if (served.left_out.empty()) {
      auto scenario = scenario_of(row, *quant, specs);
      if (!scenario) return scenario.mistakes();
      served.scenario = std::move(scenario).value();
      if (disaggregated(row)) served.recipes = recipes_of(row, served.scenario);
      if (disaggregated(row) && served.recipes.empty()) {
        served.left_out = "no public recipe has so many clients";
      }
    }
    cases.push_back(std::move(served));
  }
  return cases;
}

}  // namespace tools

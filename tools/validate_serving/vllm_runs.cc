#include "tools/validate_serving/vllm_runs.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <utility>

#include "results/durable_file.h"
#include "sweep/language/sweep_spec.h"
#include "sweep/workload/trace_file.h"

namespace tools {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Names of devices in the data and in our library.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kDevices = {{
    {"RTXPRO6000", "rtx-pro-6000-server"},
    {"RTX4090", "rtx-4090"},
    {"A6000", "rtx-a6000"},
    {"A100", "a100-80gb-sxm"},
    {"H100", "h100-sxm"},
    {"H200", "h200-sxm"},
}};

engine::Mistake bad_file(const fs::path& file, std::string_view what) {
  return {
      {file.string()}, std::string(what), "llmservingsim_vllm_runs/SOURCE.md says what is in it"};
}

engine::Result<Json> read_json(const fs::path& file) {
  const auto text = results::read_file(file);
  if (!text) return bad_file(file, "there is no such file");
  Json json = Json::parse(*text, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return bad_file(file, "this is no JSON object");
  return json;
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// "meta-llama/Llama-3.1-8B" is llama-3.1-8b here.
std::string our_name(const std::string& model) { return lower(model.substr(model.find('/') + 1)); }

engine::Result<engine::Scenario> scenario_of(const Json& settings, std::string_view device,
                                             const sweep::Library& library) {
  engine::Scenario scenario;
  scenario.task = engine::Task::serve;
  const std::string model = our_name(settings.value("model", ""));
  for (const auto& [section, name] : {std::pair{"devices", std::string(device)},
                                      {"models", model},
                                      {"serving", "vllm-v1"},
                                      {"hosts", "vllm-v1"}}) {
    auto spec = sweep::read_named(library, section, name);
    if (!spec) return spec.mistakes();
    const engine::Scenario& read = spec->scenario;
    if (spec->section == "device") scenario.device = read.device;
    if (spec->section == "model") scenario.model = read.model;
    if (spec->section == "serving") scenario.serving = read.serving;
    if (spec->section == "host") scenario.host = read.host;
  }
  engine::ServingSettings& serving = scenario.serving;
  serving.max_num_seqs = settings.value("max_num_seqs", serving.max_num_seqs);
  serving.max_num_batched_tokens =
      settings.value("max_num_batched_tokens", serving.max_num_batched_tokens);
  serving.memory_utilization = settings.value("gpu_memory_utilization", serving.memory_utilization);
  serving.prefix_caching = true;  // the engine's default
  scenario.parallel.tp = settings.value("tensor_parallel_size", std::int64_t{1});
  scenario.parallel.dp = settings.value("data_parallel_size", std::int64_t{1});
  if (settings.value("enable_expert_parallel", false)) {
    scenario.parallel.ep = scenario.parallel.tp * scenario.parallel.dp;
  }
  // Times were taken inside the engine: the way to it and back is not in them.
  scenario.host.request_latency = engine::Seconds{0};
  scenario.load.arrivals = engine::ArrivalKind::trace;
  scenario.output.requests = true;
  return scenario;
}

// Fills in what requests.jsonl says.
std::vector<engine::Mistake> read_requests(const fs::path& file, MeasuredRun& run) {
  const auto text = results::read_file(file);
  if (!text) return {bad_file(file, "there is no such file")};
  std::istringstream lines(*text);
  double begin = 0, end = 0, tokens = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    const Json row = Json::parse(line, nullptr, false);
    if (row.is_discarded() || !row.contains("queued_ts") || !row.contains("first_token_ts") ||
        !row.contains("last_token_ts") || !row.contains("output_toks")) {
      return {bad_file(file, fmt::format("line {} has no times", run.requests.size() + 1))};
    }
    const double queued = row["queued_ts"], first = row["first_token_ts"];
    const double last = row["last_token_ts"], output = row["output_toks"];
    run.requests.push_back(
        {.ttft = first - queued, .tpot = output > 1 ? (last - first) / (output - 1) : 0});
    begin = run.requests.size() == 1 ? queued : std::min(begin, queued);
    end = std::max(end, last);
    tokens += output;
  }
  if (run.requests.size() != run.trace->size()) {
    return {bad_file(file, fmt::format("{} requests, but the workload has {}", run.requests.size(),
                                       run.trace->size()))};
  }
  run.output_rate = tokens / (end - begin);
  for (const RequestTimes& times : run.requests) {
    run.served.ttft += times.ttft / double(run.requests.size());
    run.served.tpot += times.tpot / double(run.requests.size());
  }
  return {};
}

engine::Result<MeasuredRun> read_run(const fs::path& folder, const fs::path& data,
                                     const sweep::Library& library) {
  const auto meta = read_json(folder / "meta.json");
  if (!meta) return meta.mistakes();
  const std::string hardware = folder.parent_path().filename().string();
  const auto device = std::ranges::find(kDevices, std::string_view(hardware),
                                        &decltype(kDevices)::value_type::first);
  if (device == kDevices.end()) {
    return bad_file(folder, fmt::format("'{}' is no device of the library", hardware));
  }
  const Json settings = meta->value("engine_kwargs", Json::object());
  auto scenario = scenario_of(settings, device->second, library);
  if (!scenario) return scenario.mistakes();
  MeasuredRun run;
  run.served = {.source = "llmservingsim_vllm_runs",
                .id = fmt::format("{}/{}", hardware, folder.filename().string()),
                .engine = "vllm",
                .version = meta->value("vllm_version", ""),
                .scenario = std::move(scenario).value()};
  const fs::path workload =
      data / "llmservingsim_vllm_runs" / meta->value("dataset_path", std::string());
  auto trace = sweep::read_trace(workload.string());
  if (!trace) return trace.mistakes();
  run.trace = *trace;
  run.served.scenario.load.trace = workload.string();
  for (const char* key : {"num_gpu_blocks", "kv_blocks"}) {
    if (meta->contains(key) && (*meta)[key].is_number()) run.kv_blocks = (*meta)[key];
  }
  run.profile = data / "llmservingsim_profiles" / hardware / settings.value("model", "") / "bf16";
  if (auto mistakes = read_requests(folder / "requests.jsonl", run); !mistakes.empty()) {
    return mistakes;
  }
  return run;
}

}  // namespace

engine::Result<std::vector<MeasuredRun>> vllm_runs(const fs::path& data,
                                                   const sweep::Library& library) {
  std::vector<fs::path> folders;
  for (const auto& entry : fs::recursive_directory_iterator(data / "llmservingsim_vllm_runs")) {
    if (entry.path().filename() == "meta.json") folders.push_back(entry.path().parent_path());
  }
  std::ranges::sort(folders);
  std::vector<MeasuredRun> runs;
  for (const fs::path& folder : folders) {
    auto run = read_run(folder, data, library);
    if (!run) return run.mistakes();
    runs.push_back(std::move(run).value());
  }
  return runs;
}

}  // namespace tools

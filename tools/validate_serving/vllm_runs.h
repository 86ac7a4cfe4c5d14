// The runs of llmservingsim_vllm_runs: a recorded load on a real engine, with the times of each request.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/workload/trace.h"
#include "sweep/language/library.h"
#include "tools/validate_serving/served_case.h"

namespace tools {

struct RequestTimes {
  double ttft = 0;  // seconds, from the engine's queue on
  double tpot = 0;
};

struct MeasuredRun {
  ServedCase served;
  std::shared_ptr<const engine::Trace> trace;
  std::vector<RequestTimes> requests;  // in the order of the trace
  double output_rate = 0;              // generated tokens a second, first arrival to last token
  std::int64_t kv_blocks = 0;          // as the engine reported it; 0: not recorded
  std::filesystem::path profile;       // folder of the same device and model; may not be there
};

// Every folder of `data`/llmservingsim_vllm_runs with a meta.json.
engine::Result<std::vector<MeasuredRun>> vllm_runs(const std::filesystem::path& data,
                                                   const sweep::Library& library);

}  // namespace tools

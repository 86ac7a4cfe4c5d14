// What `vllm bench serve --save-result` measured, as the outcome that a simulation of the same load would have.
#pragma once

#include <filesystem>
#include <string>

#include "engine/base/result.h"
#include "engine/outcome.h"
#include "engine/workload/load.h"

namespace tools {

struct VllmResult {
  engine::Outcome outcome;
  // The file has the latencies of every request (--save-detailed); else only what vLLM sums up.
  bool detailed = false;
  // It has their starts; else every request's times count from its own start.
  bool timed = false;
  // The load that was offered: requests a second, or how many at a time. NaN: not stated, or no limit.
  double request_rate = 0;
  double concurrency = 0;
};

// What a file says of the load it measured against the load of a point; empty where nothing contradicts.
std::string contradiction(const VllmResult& result, const engine::Load& load);

// Figures that vLLM does not measure stay null.
engine::Result<VllmResult> read_vllm_result(const std::filesystem::path& file);

}  // namespace tools

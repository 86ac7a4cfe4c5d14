// What `vllm bench serve --save-result` measured, as the outcome that a simulation of the same load would have.
#pragma once

#include <filesystem>
#include <string>

#include "engine/base/result.h"
#include "engine/outcome.h"

namespace tools {

struct VllmResult {
  engine::Outcome outcome;
  // The file has the latencies of every request (--save-detailed); else only what vLLM sums up.
  bool detailed = false;
  // It has their starts; else every request's times count from its own start.
  bool timed = false;
};

// Figures that vLLM does not measure stay null.
engine::Result<VllmResult> read_vllm_result(const std::filesystem::path& file);

}  // namespace tools

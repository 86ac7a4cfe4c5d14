// Published training runs, as scenarios.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/scenario.h"
#include "sweep/language/library.h"

namespace tools {

// `quant.group` of tensors with one scale.
inline constexpr std::int64_t kOneScale = 1 << 20;

struct TrainingRun {
  std::string table;  // folder that it is from
  std::string name;
  std::string model;  // as the table calls it
  engine::Scenario scenario;
  double tokens_per_s_per_device = 0;  // as published
  std::string not_stated;  // what the table does not say and the scenario takes for granted
  std::string left_out;    // why it cannot be predicted; empty: it can
};

// Of <data>/train_megatron_bridge, train_mosaicml_mpt, published_mlperf_training, published_maxtext_tpu and published_intel_gaudi.
engine::Result<std::vector<TrainingRun>> training_runs(const std::filesystem::path& data,
                                                       const sweep::Library& library);

// Steps of PyTorch models on one H200 (tools/gpu/train_sweep.py).
struct MeasuredStep {
  std::string mode;  // eager, compiled or graph
  std::string recompute;
  engine::Scenario scenario;
  double forward = 0, backward = 0, optimizer = 0;  // seconds
  double peak_bytes = 0;
  bool launch_bound = false;  // the host's launches take longer than the device's work
};
engine::Result<std::vector<MeasuredStep>> measured_steps(const std::filesystem::path& table,
                                                         const sweep::Library& library);

// The same again and again, for some seconds without a pause (tools/gpu/train_profile.py).
struct MeasuredLoad {
  engine::Scenario scenario;
  double step = 0;   // seconds
  double power = 0;  // watts
};
engine::Result<std::vector<MeasuredLoad>> measured_loads(const std::filesystem::path& table,
                                                         const sweep::Library& library);

}  // namespace tools

// Transfer parameters of single engine versions. The same call takes one engine twice as long as another,
// so a row that names its engine is predicted with that engine's parameters.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "tools/calibrate/load_calibration.h"
#include "tools/calibrate/predict.h"

namespace tools {

// "vllm_0.24.0" of "vllm_0.24.0:vllm_flash_attn_fa3"; empty for a library's kernel.
std::string_view engine_in(std::string_view impl);

// Orders versions as people do: 0.9 before 0.14, a release candidate by its number.
bool older_version(std::string_view a, std::string_view b);

struct EngineCalibration {
  std::string engine;  // "vllm_0.24.0", or of one kernel only: "vllm_0.24.0:vllm_flash_attn_fa3"
  SharedCalibration calibration;
};

// calibration/engines/*.calibration of the library, each completed by `transfer`.
engine::Result<std::vector<EngineCalibration>> load_engines(const sweep::Library& library,
                                                            const engine::Calibration& transfer);

// Predicts calls of one implementation; where its own parameters say nothing, by the plain ones.
class RowPredictor {
 public:
  RowPredictor(const Predictor& own, const Predictor& plain) : own_(&own), plain_(&plain) {}

  Prediction operator()(const KernelCall& call) const {
    const Prediction prediction = (*own_)(call);
    const bool silent = own_ != plain_ && prediction.tier == engine::Tier::roofline;
    return silent ? (*plain_)(call) : prediction;
  }

 private:
  const Predictor* own_;
  const Predictor* plain_;
};

// Predicts rows of a table by the name of their implementation: parameters of the engine's version, or
// of the nearest version that has some; of nobody known, the plain calibration.
class TablePredictor {
 public:
  TablePredictor(const engine::Device& device, SharedCalibration plain,
                 std::vector<EngineCalibration> engines);

  RowPredictor of(std::string_view impl) const;

 private:
  SharedCalibration calibration_;
  std::vector<EngineCalibration> engines_;  // oldest version first
  Predictor plain_;
  std::vector<Predictor> predictors_;
};

}  // namespace tools

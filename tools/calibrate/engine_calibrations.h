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
  std::string engine;  // "vllm_0.24.0"
  SharedCalibration calibration;
};

// calibration/engines/*.calibration of the library, each completed by `transfer`.
engine::Result<std::vector<EngineCalibration>> load_engines(const sweep::Library& library,
                                                            const engine::Calibration& transfer);

// Predicts rows of a table by the name of their implementation: parameters of the engine's version, or
// of the nearest version that has some; of nobody known, the plain calibration.
class TablePredictor {
 public:
  TablePredictor(const engine::Device& device, SharedCalibration plain,
                 std::vector<EngineCalibration> engines);

  const Predictor& of(std::string_view impl) const;

 private:
  SharedCalibration calibration_;
  std::vector<EngineCalibration> engines_;  // oldest version first
  Predictor plain_;
  std::vector<Predictor> predictors_;
};

}  // namespace tools

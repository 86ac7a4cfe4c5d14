// Transfer parameters of single engine versions. The same call takes one engine twice as long as another,
// so a row that names its engine is predicted with that engine's parameters.
#pragma once

#include <functional>
#include <map>
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
  std::string engine;  // "vllm_0.24.0", or one kernel of it: "sglang_0.5.14:triton"
  SharedCalibration calibration;
};

// calibration/engines/*.calibration of the library.
engine::Result<std::vector<EngineCalibration>> load_engines(const sweep::Library& library);

// Predicts rows of a table by the name of their implementation. Parameters come, set by set, from the
// first that has them: the kernel named, that kernel in other versions of the engine, the engine's
// version, its other versions, `transfer`. Of other versions the newest comes first: it tells old rows
// better than an old one does new rows, or the shared parameters do. Rows that name no engine we
// know get `plain`.
class TablePredictor {
 public:
  TablePredictor(const engine::Device& device, SharedCalibration plain);
  TablePredictor(const engine::Device& device, SharedCalibration plain,
                 std::vector<EngineCalibration> engines, SharedCalibration transfer);

  // Stays where it is; made when first asked for.
  const Predictor& of(std::string_view impl);

 private:
  struct Made {
    SharedCalibration calibration;
    Predictor predictor;
  };

  SharedCalibration gathered(std::string_view impl) const;

  const engine::Device& device_;
  SharedCalibration plain_;
  std::vector<EngineCalibration> engines_;
  SharedCalibration transfer_;
  std::map<std::string, Made, std::less<>> made_;  // by implementation
};

}  // namespace tools

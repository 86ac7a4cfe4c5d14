// Transfer parameters of single engine versions. The same call takes one engine twice as long as another,
// so a row that names its engine is predicted with that engine's parameters.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "tools/calibrate/errors/load_calibration.h"
#include "tools/calibrate/tables/predict.h"

namespace tools {

struct EngineCalibration {
  std::string engine;  // "vllm_0.24.0", or of one kernel only: "vllm_0.24.0:vllm_flash_attn_fa3"
  SharedCalibration calibration;
};

// calibration/engines/*.calibration of the library, each completed by `transfer`: an engine's kernels as
// forms, which steps of a model can use.
engine::Result<std::vector<EngineCalibration>> load_engines(const sweep::Library& library,
                                                            const engine::Calibration& transfer);

// The *.calibration files of tools/calibrate/engine_rows: the same with the rules by which an engine chooses
// its kernels, for rows of tables.
engine::Result<std::vector<EngineCalibration>> load_engine_rows(
    const std::filesystem::path& folder);

// Whose parameters rows may get before the plain ones.
struct TableEngines {
  std::vector<EngineCalibration> swept;  // implementations in a sweep of the device
  std::vector<EngineCalibration> known;  // from other devices
  SharedCalibration transfer;            // what completes those
};

// Predicts rows of a table by the name of their implementation. Parameters come, set by set, from the
// first that has them: the kernel named, that kernel in other versions of the engine, the engine's
// version, its other versions, `transfer`. Of other versions the newest comes first: it tells old rows
// better than an old one does new rows, or the shared parameters do. Rows that name nobody we know
// get `plain`.
class TablePredictor {
 public:
  TablePredictor(const engine::Device& device, SharedCalibration plain, TableEngines engines = {});

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
  TableEngines engines_;
  std::map<std::string, Made, std::less<>> made_;  // by implementation
};

}  // namespace tools

// Calibrations from files: specs/calibration/NAME.calibration, or a file named outright.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "engine/base/result.h"
#include "engine/calibration/calibration.h"
#include "sweep/spec/library.h"

namespace tools {

// Empty: there is no such file in the library.
using SharedCalibration = std::shared_ptr<const engine::Calibration>;

engine::Result<SharedCalibration> load_calibration_file(const std::filesystem::path& file);
// The transfer parameters of the library; empty where it has none.
engine::Result<SharedCalibration> load_transfer(const sweep::Library& library);

struct CalibrationRequest {
  std::string tier;  // "roofline", "transfer", "measured"; empty: the best there is
  std::string file;  // instead of the library's
  std::string device;
};

// What a prediction uses; empty: the roofline. A tier that was asked for and is not there is a mistake.
engine::Result<SharedCalibration> load_requested(const CalibrationRequest& request,
                                                 const sweep::Library& library);

}  // namespace tools

// Calibrations from files: specs/calibration/NAME.calibration, or a file named outright.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/calibration/calibration.h"
#include "sweep/language/library.h"

namespace tools {

// Empty: there is no such file in the library.
using SharedCalibration = std::shared_ptr<const engine::Calibration>;

// A file of a device may hold calibrations of single implementations after the device's own.
struct CalibrationFile {
  SharedCalibration device;
  std::vector<SharedCalibration> implementations;
};
engine::Result<CalibrationFile> load_calibration_file(const std::filesystem::path& file);
// The transfer parameters of the library; empty where it has none.
engine::Result<SharedCalibration> load_transfer(const sweep::Library& library);

struct CalibrationRequest {
  std::string tier;  // "roofline", "transfer", "measured"; empty: the best there is
  std::string file;  // instead of the library's
  engine::Device device;
};

// What a prediction for the device uses; nothing: the roofline. A tier that was asked for and is not there
// is a mistake. A sweep of another device, or of this one before its datasheet was altered, is used as that.
engine::Result<CalibrationFile> load_requested(const CalibrationRequest& request,
                                               const sweep::Library& library);

}  // namespace tools

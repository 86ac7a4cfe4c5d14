// Which powers of a device give the times and the power that were measured in steps without a pause?
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/base/units.h"
#include "engine/calibration/calibration.h"
#include "engine/hardware/device.h"
#include "tools/calibrate/fit/error_summary.h"

namespace tools {

struct FittedPower {
  std::string field;  // "busy_power"
  engine::Watts value;
  engine::Watts low, high;  // over fits that each leave a fifth of the rows out
};

struct PowerErrors {
  std::string phase;
  ErrorSummary seconds, watts;  // of rows left out of the fit
};

struct PowerFit {
  std::vector<FittedPower> powers;
  std::vector<PowerErrors> errors;
};

struct PowerFitInputs {
  engine::Device device;
  const engine::Calibration* calibration = nullptr;
  // What a change of kernel costs beyond the gap that is part of every measured row; the device is at rest meanwhile.
  engine::Seconds kernel_switch{0.5e-6};
};

// Reads a table with the columns of a steps.csv, `format`, `power_w` and one row of phase rest, which says idle_power. Busy, tensor and
// memory power are fitted: a row at the limit tells by its time, one below it by its power.
engine::Result<PowerFit> fit_powers(const std::filesystem::path& table,
                                    const PowerFitInputs& inputs);

std::string power_fit_text(const PowerFit& fit);

}  // namespace tools

// Composition: whole steps that tools/gpu measured, against the engine's sum of kernels and gaps.
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

struct StepErrors {
  std::string model;
  std::string phase;  // "prefill", "decode", "mixed"
  ErrorSummary errors;
};

struct StepCheck {
  const engine::Device& device;
  const engine::Calibration* calibration = nullptr;
  // What a change of kernel costs beyond the gap that is part of every measured row.
  engine::Seconds kernel_switch{0.5e-6};
};

// Reads a steps.csv; its graph rows are compared with device time and gaps (host time is not in them),
// at the clock of a rested device, as the kernel rows are. One line a model and phase, then one a
// phase over all models.
engine::Result<std::vector<StepErrors>> step_errors(const std::filesystem::path& steps,
                                                    const StepCheck& check);

std::string step_errors_text(const std::vector<StepErrors>& rows);

}  // namespace tools

// A calibration of one device from a sweep of it, and how well it does on calls it was not given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/calibration/calibration.h"
#include "engine/hardware/device.h"
#include "tools/calibrate/fit/error_summary.h"
#include "tools/calibrate/tables/measured_calls.h"

namespace tools {

// Fewer calls than this cannot be fitted and checked: the family is left out.
constexpr std::size_t kLeastCalls = 12;

// Errors of one section ("gemm/bf16") on calls left out in turn, a fifth at a time.
struct SectionErrors {
  std::string section;
  std::size_t calls = 0;
  ErrorSummary before;  // of the parameters the device had so far, on all calls
  ErrorSummary random;  // any fifth of the calls left out
  ErrorSummary unseen;  // a fifth of the weight shapes, head layouts or widths left out entirely
};

struct MeasuredFit {
  engine::Calibration calibration;  // of the swept sections only
  std::vector<SectionErrors> errors;
  std::vector<std::string> left_out;  // what could not be calibrated, and why
};

enum class Checks : std::uint8_t {
  thorough,  // every fifth is left out in turn, and the whole fit done without it
  quick,  // one fifth of either kind, for trees and points only; also where a section has many calls
};

// Each section's form is fitted to the calls, beginning at its parameters in `start`, and what is left over
// becomes trees and measured points.
MeasuredFit fit_measured(const std::vector<MeasuredCall>& calls, const engine::Device& device,
                         const engine::Calibration& start, Checks checks = Checks::thorough);

}  // namespace tools

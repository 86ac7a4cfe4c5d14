// Transfer parameters from sweeps of several devices, and how well they do on a device left out.
#pragma once

#include <string>
#include <vector>

#include "engine/calibration/calibration.h"
#include "engine/hardware/device.h"
#include "tools/calibrate/error_summary.h"
#include "tools/calibrate/fit_section.h"
#include "tools/calibrate/measured_calls.h"

namespace tools {

struct DeviceCalls {
  engine::Device device;
  std::vector<MeasuredCall> calls;
};

// A device predicted from the others only: the set it would get if it had never been measured.
struct LeftOut {
  std::string section;
  std::string device;
  std::string set;  // the others' set that spoke for it
  ErrorSummary roofline;
  ErrorSummary errors;
};

struct TransferOptions {
  std::vector<std::string> sections;  // names that begin so; none: all
  std::size_t most_samples = 1200;    // a fit
  std::size_t most_scored = 4000;     // a device
  MinimiseOptions search;
};

// Leaves each device out in turn.
std::vector<LeftOut> leave_one_out(const std::vector<DeviceCalls>& devices,
                                   const TransferOptions& options);

// Every set that the devices speak for: their generations', their classes', all together. The
// intervals of a set are the errors on devices left out where there are several, else its own.
engine::Calibration fit_transfer(const std::vector<DeviceCalls>& devices,
                                 const TransferOptions& options);

std::string left_out_text(const std::vector<LeftOut>& rows);

}  // namespace tools

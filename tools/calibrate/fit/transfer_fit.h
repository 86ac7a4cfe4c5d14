// Transfer parameters from sweeps of several devices, and how well they do on a device left out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/calibration/calibration.h"
#include "tools/calibrate/fit/error_summary.h"
#include "tools/calibrate/fit/fit_section.h"
#include "tools/calibrate/fit/transfer_sections.h"

namespace tools {

enum class Without : std::uint8_t {
  device,      // its generation may still speak for it
  generation,  // no relative was seen either
};

// A device predicted from others only: the set it would get if it had never been measured. Its
// interval comes from the other devices' turns.
struct LeftOut {
  std::string section;
  std::string device;
  Without without = Without::device;
  std::string set;  // the others' set that spoke for it
  ErrorSummary roofline;
  ErrorSummary errors;
};

struct TransferOptions {
  std::vector<std::string> sections;  // names that begin so; none: all
  std::size_t most_samples = 1000;    // a fit
  std::size_t most_scored = 3000;     // a device
  MinimiseOptions search{.rounds = 30, .evaluations = 600, .cycles = 2};
};

// Leaves each device out in turn, and each generation that has several.
std::vector<LeftOut> leave_one_out(const std::vector<DeviceCalls>& devices,
                                   const TransferOptions& options);

struct TransferFit {
  engine::Calibration calibration;
  std::vector<LeftOut> left_out;
};

// Every set that the devices speak for: their generations', their classes', all together. The interval
// of a generation is its own errors, widened for a relative; that of a wider set the errors on
// generations left out, where there are several.
TransferFit fit_transfer(const std::vector<DeviceCalls>& devices, const TransferOptions& options);

// One engine's section on one device: calls of weight shapes and head layouts that the fit had not seen.
struct UnseenShapes {
  std::string section;
  std::string device;
  ErrorSummary errors;
};

struct EngineFit {
  engine::Calibration forms;         // for steps: monotone, as the shared parameters are
  engine::Calibration rows;          // for rows of tables: with trees for the rules of its kernels
  std::vector<UnseenShapes> unseen;  // of `rows`
};

// One engine's calls: all, for rows of tables are predicted as they were measured; and on the same
// devices those that say what a kernel does, for steps.
struct EngineCalls {
  std::vector<DeviceCalls> rows;
  std::vector<DeviceCalls> kernels;
};

// Only the generations that one engine was measured on; the shared parameters speak for the rest. The
// intervals are the errors of the fit, or with trees those on unseen shapes, widened for a relative.
EngineFit fit_engine(const EngineCalls& calls, const TransferOptions& options);

std::string left_out_text(const std::vector<LeftOut>& rows);
std::string unseen_text(const std::vector<UnseenShapes>& rows);

}  // namespace tools

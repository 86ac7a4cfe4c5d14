// Measured calibrations of single implementations: in a table of several engines one call has several
// times, and a row is best predicted by what was measured of its own kernel.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/calibrate/fit/measured_fit.h"

namespace tools {

// Calls by the name of their implementation, equal rows already one.
using CallsByImpl = std::map<std::string, std::vector<MeasuredCall>>;

// Adds the calls of a table; `impl` as in GatherOptions, and a regular expression.
void add_calls_by_impl(const KernelTable& table, const std::string& impl, CallsByImpl& calls);

// One fit for each engine's kernel in sections that several of them have; what is measured by one alone is
// the device's own. Forms begin at the device's (`device_fit`), then at `transfer`.
std::vector<MeasuredFit> fit_implementations(const CallsByImpl& calls, const engine::Device& device,
                                             const engine::Calibration& device_fit,
                                             const engine::Calibration& transfer);

}  // namespace tools

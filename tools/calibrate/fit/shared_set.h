// One set of parameters that several devices share.
#pragma once

#include <string>
#include <vector>

#include "engine/calibration/calibration.h"
#include "engine/hardware/device.h"
#include "tools/calibrate/fit/fit_section.h"
#include "tools/calibrate/fit/transfer_sections.h"

namespace tools {

// Whether an engine timed any of the calls, with what it does around its kernel.
bool is_engines(const std::vector<Sample>& samples);

// A calibration whose only set is the section's own one, fitted to the samples of `devices` from
// neutral values. What the samples cannot tell apart is settled by rule: where only engines timed the
// calls, two thirds of an attention floor are the engine's, and of a product's all beyond a launch.
engine::Calibration fit_shared_set(const std::string& section, const std::vector<Sample>& samples,
                                   const std::vector<const engine::Device*>& devices,
                                   const MinimiseOptions& search);

// Only shapes like those of `samples` count as seen by the own set.
void see_only(engine::Calibration& calibration, const std::string& section,
              const std::vector<Sample>& samples);

// Copies the own set of `from` into `set` of `into`.
void keep_shared_set(const engine::Calibration& from, const std::string& section,
                     engine::ParameterSet set, const Interval& interval, engine::Calibration& into);

}  // namespace tools

// One set of parameters that several devices share.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "engine/calibration/calibration.h"
#include "engine/hardware/device.h"
#include "tools/calibrate/fit/fit_section.h"
#include "tools/calibrate/fit/transfer_sections.h"

namespace tools {

// Whether an engine timed any of the calls, with what it does around its kernel.
bool is_engines(const std::vector<Sample>& samples);

// Calls of one section, of the devices that a set speaks for.
struct SharedCalls {
  std::string section;
  engine::ParameterSet set = engine::ParameterSet::pooled;
  std::vector<Sample> samples;
  std::vector<const engine::Device*> devices;
};

// The sets of single generations.
inline constexpr std::array kGenerations = {
    engine::ParameterSet::ampere, engine::ParameterSet::hopper, engine::ParameterSet::blackwell,
    engine::ParameterSet::cdna};
bool is_generation(engine::ParameterSet set);

// A calibration whose only set is the section's own one, fitted to the calls from neutral values. What the samples cannot tell apart is
// settled by rule: where only engines timed the calls, two thirds of an attention floor are the engine's, and of a product's all beyond
// a launch. Quantising the input and a product's own way then look alike, too: tiles, waves and traffic are those of the same devices'
// products in 16 bits (`wide`, where there are any), and the samples say what the format changes.
engine::Calibration fit_shared_set(const SharedCalls& calls, const SharedCalls& wide,
                                   const MinimiseOptions& search);

// Only shapes like those of `samples` count as seen by the own set.
void see_only(engine::Calibration& calibration, const std::string& section,
              const std::vector<Sample>& samples);

// Copies the own set of `from` into `set` of `into`.
void keep_shared_set(const engine::Calibration& from, const std::string& section,
                     engine::ParameterSet set, const Interval& interval, engine::Calibration& into);

// To five digits: more would pretend.
double rounded(double value);

}  // namespace tools

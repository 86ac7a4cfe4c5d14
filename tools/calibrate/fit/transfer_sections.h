// The calls of several devices by section of the calibration, and which devices a parameter set speaks
// for.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "engine/calibration/calibration.h"
#include "engine/hardware/device.h"
#include "tools/calibrate/fit/error_summary.h"
#include "tools/calibrate/fit/fit_section.h"
#include "tools/calibrate/tables/measured_calls.h"

namespace tools {

// Samples of one section ("gemm/bf16"), one list a device.
using Section = std::vector<std::vector<Sample>>;

// Sections whose names begin as one of `wanted` says; none: all. Samples point into `devices`.
std::map<std::string, Section> sections_of(const std::vector<DeviceCalls>& devices,
                                           const std::vector<std::string>& wanted);

// Devices with samples that `set` speaks for, without those left out.
std::vector<std::size_t> members_of(const Section& section, const std::vector<DeviceCalls>& devices,
                                    engine::ParameterSet set,
                                    const std::vector<std::size_t>& left_out);

// At most `most` samples, evenly from all members: each has the same weight, however many rows its
// table has.
std::vector<Sample> equal_shares(const Section& section, const std::vector<std::size_t>& members,
                                 std::size_t most);

// Predictions of at most `most` samples, all of one device; no calibration: the roofline.
std::vector<Scored> scored_by(const engine::Calibration* calibration,
                              const std::vector<Sample>& samples, std::size_t most);

// Nine measured times in ten lie between `low` and `high` times the predicted one.
struct Interval {
  double low = 1;
  double high = 1;
};
// Of several devices' predictions, each device with the same weight.
Interval interval_of(const std::vector<std::vector<Scored>>& devices);
// Of devices whose generation was left out. Where the others are too fast for one, it is too slow for them: how far they are off says how
// far the next generation may be, and not which way.
Interval interval_of_strangers(const std::vector<std::vector<Scored>>& devices);

}  // namespace tools

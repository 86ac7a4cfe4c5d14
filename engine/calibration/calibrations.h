// The calibrations a run has loaded, and which of them a point gets.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "engine/calibration/calibration.h"

namespace engine {

struct Calibrations {
  // By name: "transfer", and the names of swept devices. Shared: every point reads the same ones.
  // A measured one is completed_by the transfer parameters when it is loaded.
  std::map<std::string, std::shared_ptr<const Calibration>, std::less<>> by_name;

  const Calibration* find(std::string_view name) const {
    const auto found = by_name.find(name);
    return found == by_name.end() ? nullptr : found->second.get();
  }
};

inline constexpr std::string_view kTransferName = "transfer";

struct CalibrationChoice {
  const Calibration* calibration = nullptr;  // nullptr: the roofline
  bool missing = false;                      // what was asked for is not there
};

// `name` is that of the measured calibration; empty: the device's own name.
CalibrationChoice choose_calibration(TierChoice tier, std::string_view name, const Device& device,
                                     const Calibrations& have);

// A sweep as it speaks for `device`: itself on the machine it was made on, its `altered` on any other;
// nullptr where it has none. Links count only where it measured collectives.
const Calibration* speaking_for(const Calibration& measured, const Device& device);

}  // namespace engine

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
  using Named = std::map<std::string, std::shared_ptr<const Calibration>, std::less<>>;
  Named by_name;
  // Transfer parameters of single engines' kernels ("vllm_0.24.0"), completed by the plain ones.
  Named by_engine;

  const Calibration* find(std::string_view name) const { return find_in(by_name, name); }
  const Calibration* find_engine(std::string_view name) const { return find_in(by_engine, name); }

 private:
  static const Calibration* find_in(const Named& named, std::string_view name) {
    const auto found = named.find(name);
    return found == named.end() ? nullptr : found->second.get();
  }
};

inline constexpr std::string_view kTransferName = "transfer";

struct CalibrationChoice {
  const Calibration* calibration = nullptr;  // nullptr: the roofline
  bool missing = false;                      // what was asked for is not there
};

struct CalibrationWish {
  TierChoice tier = TierChoice::best;
  std::string_view name;    // of the measured calibration; empty: one measured on such a device
  std::string_view engine;  // whose kernels, where nothing was measured; empty: well-made ones
};
// A measured calibration is found by what the device is: the facts it was measured on. Failing that, the one
// that `device.measured_as` names speaks for a device whose fields were altered. Names count only for sweeps
// so old that they do not say what they were measured on.
CalibrationChoice choose_calibration(const CalibrationWish& wish, const Device& device,
                                     const Calibrations& have);

// A sweep as it speaks for `device`: itself on the machine it was made on, its `altered` on any other;
// nullptr where it has none. Links count only where it measured collectives.
const Calibration* speaking_for(const Calibration& measured, const Device& device);

}  // namespace engine

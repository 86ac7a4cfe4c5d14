// What was learned from measurements, as plain values: fitted parameters per family, format and set of
// devices, how far they may be trusted, and the measured calls of a device that was swept.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/base/tier.h"
#include "engine/calibration/attention_families.h"
#include "engine/calibration/network_families.h"
#include "engine/calibration/pass_families.h"
#include "engine/calibration/product_families.h"
#include "engine/hardware/device.h"

namespace engine {

// Raised when the text below is read differently; another format is refused.
constexpr std::int64_t kCalibrationFormat = 2;
// The same text with shorter names of parameters (Parameter::former), which is read, too.
constexpr std::int64_t kFormerFormat = 1;

struct Calibration : ProductFamilies, AttentionFamilies, PassFamilies, NetworkFamilies {
  std::string name;
  Tier tier = Tier::transfer;
  std::string device;  // measured: the device that was swept
  std::string impl;    // measured: the one implementation it is about; empty: the device's kernels
  std::string source;  // where the measurements come from
  std::string fit_error;  // the fit's own account of its error, one line
  // Checksum of the text that it was read from, or of the former text that was put into today's words, so that equal values give points
  // equal keys.
  std::string checksum;
  bool reworded = false;              // the checksum is that of the former text
  std::string identity;               // checksums of all texts it was put together from
  std::optional<Device> measured_on;  // as its datasheet was then; older files do not say
  // The same for a device whose datasheet was altered since; shared by all copies. See completed_by.
  std::shared_ptr<const Calibration> altered;

  // Every family of parameters: visit(SectionName, its sets). A section of the text is "name/set", as
  // "gemm/fp8/hopper".
  template <class Self, class Visit>
  static void sections(Self& self, Visit&& visit) {
    ProductFamilies::sections(self, visit);
    AttentionFamilies::sections(self, visit);
    PassFamilies::sections(self, visit);
    NetworkFamilies::sections(self, visit);
  }
};

// Text of a calibration and back. Refused, with the place and the reason: another format or model
// version, a checksum that does not match (edited by hand), an unknown or repeated name, a value that
// is not a number.
Result<Calibration> parse_calibration(std::string_view text, const std::string& file_name);
std::string write_calibration(const Calibration& calibration);

// The texts of a file that holds several, one after the other: a device's, then those of single
// implementations. Each has a checksum of its own; parse_calibration reads one.
std::vector<std::string_view> calibrations_in(std::string_view text);

// A device's sweep with the transfer parameters for everything it did not measure. Where it says what it
// was measured on, `altered` speaks for a device that is no longer that: the same utilisation of the altered
// datasheet, but as what it is then: tier transfer, flagged, and as wide an interval as a relative has.
Calibration completed_by(Calibration measured, const Calibration& transfer);

}  // namespace engine

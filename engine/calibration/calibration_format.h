// What reading and writing the text of a calibration share.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/checksum.h"

namespace engine::calibration_format {

constexpr std::string_view kMagic = "llmsweep calibration ";

// Of everything but the line that states it.
inline std::string fingerprint(std::string_view before, std::string_view after) {
  return checksum_of(std::string(before) + std::string(after));
}

}  // namespace engine::calibration_format

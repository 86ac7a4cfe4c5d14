// Calibrations for tests: the shipped parameters, and sweeps of toy devices.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "engine/calibration/calibration.h"
#include "tests/support/paths.h"

namespace toys {

inline std::string file_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The parameters that ship with the program.
inline const engine::Calibration& transfer() {
  static const engine::Calibration calibration = [] {
    const std::string path = paths::specs("calibration/transfer.calibration");
    auto read = engine::parse_calibration(file_text(path), path);
    if (!read) ADD_FAILURE() << engine::to_text(read.mistakes());
    return read ? std::move(read).value() : engine::Calibration{};
  }();
  return calibration;
}

}  // namespace toys

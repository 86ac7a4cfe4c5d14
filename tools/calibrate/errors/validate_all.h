// The error tables of the README, from the public tables and our own sweep.
#pragma once

#include <filesystem>
#include <string>

#include "engine/base/result.h"
#include "sweep/language/library.h"

namespace tools {

struct ValidateAllOptions {
  std::filesystem::path data;         // shared/data
  std::filesystem::path sweeps;       // specs/calibration, for our own tables
  std::filesystem::path engine_rows;  // tools/calibrate/engine_rows
  sweep::Library library;
  std::filesystem::path readme;  // whose table is put in order; empty: none
};

// Runs every split and returns the tables as text; minutes. Parts are said on stderr as they begin.
engine::Result<std::string> validate_all(const ValidateAllOptions& options);

}  // namespace tools

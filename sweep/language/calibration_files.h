// Which calibrations the library holds, by name. They lie beside the specs and are not YAML.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "engine/leaves/leaves.h"
#include "sweep/language/library.h"
#include "sweep/language/reading.h"

namespace sweep {

// A folder of calibrations and the leaf that names one of it.
struct CalibrationFolder {
  std::string_view folder;
  std::string_view named_by;
  std::string_view what;  // is in it, for messages
};
constexpr std::array<CalibrationFolder, 2> kCalibrationFolders{{
    {"calibration", "calibration.name", "calibrations of devices"},
    {"calibration/engines", "serving.kernels", "calibrations of engines"},
}};

// Name to file; a folder asked first hides the same name in later ones.
std::map<std::string, std::filesystem::path> calibration_files(const Library& library,
                                                               std::string_view folder);

// Notes a mistake where a leaf that names a calibration names none of the library.
void check_calibration_name(const engine::Leaf& leaf, const engine::LeafValue& value,
                            const engine::Location& where, Reading& reading);

}  // namespace sweep

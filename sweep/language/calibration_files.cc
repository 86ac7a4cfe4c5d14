#include "sweep/language/calibration_files.h"

#include <algorithm>
#include <system_error>
#include <vector>

#include "sweep/language/suggest.h"

namespace sweep {

std::map<std::string, std::filesystem::path> calibration_files(const Library& library,
                                                               std::string_view folder) {
  std::map<std::string, std::filesystem::path> files;
  for (const std::filesystem::path& specs : library.folders()) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(specs / folder, error)) {
      if (entry.path().extension() != ".calibration") continue;
      files.emplace(entry.path().stem().string(), entry.path());
    }
  }
  return files;
}

void check_calibration_name(const engine::Leaf& leaf, const engine::LeafValue& value,
                            const engine::Location& where, Reading& reading) {
  for (const CalibrationFolder& folder : kCalibrationFolders) {
    if (leaf.path != folder.named_by) continue;
    const std::string& name = std::get<std::string>(value);
    const auto [known, fresh] = reading.calibration_names.try_emplace(std::string(folder.folder));
    if (fresh) {
      for (const auto& [stem, file] : calibration_files(reading.library, folder.folder)) {
        known->second.push_back(stem);
      }
    }
    const std::vector<std::string>& names = known->second;
    if (name.empty() || std::ranges::find(names, name) != names.end()) return;
    reading.mistake(
        where, leaf.path + ": there is no '" + name + "' among the " + std::string(folder.what),
        [&] {
          return names.empty() ? "the library has none" : suggestion(name, names, "known ones");
        });
  }
}

}  // namespace sweep

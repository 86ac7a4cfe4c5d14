// llmsweep list: what the spec library holds.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "engine/calibration/calibrations.h"
#include "sweep/language/calibration_files.h"
#include "sweep/language/suggest.h"
#include "tools/cli/cli.h"
#include "tools/terminal/terminal.h"

namespace tools {
namespace {

// Calibrations are no specs, but one looks for them here.
constexpr const char* kCalibrations = "calibrations";

// One line of a calibration's head: "tier: measured".
std::string head_value(const std::filesystem::path& file, std::string_view key) {
  std::ifstream text(file);
  constexpr int head_lines = 12;
  std::string line;
  for (int i = 0; i < head_lines && std::getline(text, line); ++i) {
    if (line.starts_with(key) && line.size() > key.size() + 1) return line.substr(key.size() + 2);
  }
  return "";
}

struct ListedCalibration {
  std::string name;
  std::string about;
};

std::vector<ListedCalibration> calibrations(const sweep::Library& library) {
  std::vector<ListedCalibration> listed;
  for (const sweep::CalibrationFolder& folder : sweep::kCalibrationFolders) {
    for (const auto& [name, file] : sweep::calibration_files(library, folder.folder)) {
      // The transfer calibration is for devices that have none: nobody has to name it.
      const std::string use = name == engine::kTransferName
                                  ? "used where a device has none of its own"
                                  : fmt::format("{}: {}", folder.named_by, name);
      listed.push_back(
          {name, fmt::format("{:<9} {:<34} {}", head_value(file, "tier"), use, file.string())});
    }
  }
  return listed;
}

int list_libraries(const sweep::Library& library) {
  for (const std::string& name : library.libraries_and_sweeps()) {
    print("{:<14} {:>4}   llmsweep list {}\n", name, library.names(name).size(), name);
  }
  print("{:<14} {:>4}   llmsweep list {}\n", kCalibrations, calibrations(library).size(),
        kCalibrations);
  return kOk;
}

int list_names(const sweep::Library& library, const std::string& which) {
  if (which == kCalibrations) {
    for (const ListedCalibration& entry : calibrations(library)) {
      print("{:<24} {}\n", entry.name, entry.about);
    }
    return kOk;
  }
  auto libraries = library.libraries_and_sweeps();
  libraries.emplace_back(kCalibrations);
  if (std::find(libraries.begin(), libraries.end(), which) == libraries.end()) {
    print(stderr, "error: there is no library '{}'\n  hint: {}\n", which,
          sweep::suggestion(which, libraries, "libraries"));
    return kMistake;
  }
  for (const std::string& name : library.names(which)) {
    print("{:<24} {}\n", name, sweep::summary_of(library, which, name));
  }
  return kOk;
}

}  // namespace

void add_list(CLI::App& app, int& exit_code) {
  struct Arguments {
    std::string which;
    bool names = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* verb = app.add_subcommand("list", "List the spec library, or one part of it");
  verb->add_option("library", arguments->which, "devices, models, sweeps, calibrations, ...");
  verb->add_flag("--names", arguments->names, "bare names only, for scripts");
  verb->callback([arguments, &exit_code] {
    const sweep::Library library = standard_library();
    if (arguments->names) {
      auto names = arguments->which.empty() ? library.libraries_and_sweeps()
                                            : library.names(arguments->which);
      if (arguments->which == kCalibrations) {
        for (ListedCalibration& entry : calibrations(library)) names.push_back(entry.name);
      }
      for (const std::string& name : names) print("{}\n", name);
      exit_code = kOk;
    } else {
      exit_code = arguments->which.empty() ? list_libraries(library)
                                           : list_names(library, arguments->which);
    }
  });
}

}  // namespace tools

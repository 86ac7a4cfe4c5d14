#include "tools/calibrate_cli/use_of_calibration.h"

#include <fmt/core.h>

#include "engine/calibration/calibrations.h"
#include "engine/calibration/device_facts.h"
#include "sweep/language/calibration_files.h"
#include "tools/calibrate/errors/load_calibration.h"

namespace tools {
namespace {

constexpr const char* kDevices = "calibration";
constexpr const char* kEngines = "calibration/engines";

std::string place(std::string_view folder, std::string_view name) {
  return fmt::format(
      "put it where sweeps look: specs/{0}/{1}.calibration beside the sweep, or "
      "{0}/{1}.calibration in a folder of $LLMSWEEP_SPECS\n",
      folder, name);
}

// Another measured calibration of the library that was made on such a device; empty: there is none.
std::string rival_of(const std::string& name, const engine::Device& device,
                     const sweep::Library& library) {
  for (const auto& [other, file] : sweep::calibration_files(library, kDevices)) {
    if (other == name || other == engine::kTransferName) continue;
    const auto loaded = load_calibration_file(file);
    const bool known = loaded && loaded->device->measured_on.has_value();
    if (known && engine::same_kernels(*loaded->device->measured_on, device)) return other;
  }
  return "";
}

}  // namespace

std::string use_of_measured(const std::filesystem::path& file, const engine::Device& device,
                            const sweep::Library& library) {
  const std::string name = file.stem().string();
  std::string text = place(kDevices, name);
  const std::string rival = rival_of(name, device, library);
  if (rival.empty()) {
    text += fmt::format(
        "points on {} then take it; 'calibration: {{name: {}}}' takes it for any device, rescaled "
        "to its datasheet\n",
        device.name, name);
  } else {
    text += fmt::format(
        "state 'calibration: {{name: {}}}' in the sweep: '{}' was measured on such a device, too\n",
        name, rival);
  }
  return text +
         "'llmsweep check SWEEP' and column 'calibration' of the rows say which one is taken\n";
}

std::string use_of_transfer() {
  return place(kDevices, engine::kTransferName) +
         "it then takes the place of the one that ships, for all devices without a sweep of their "
         "own\n";
}

std::string use_of_engine(const std::filesystem::path& file) {
  const std::string name = file.stem().string();
  return place(kEngines, name) + fmt::format("'serving: {{kernels: {}}}' takes it\n", name);
}

}  // namespace tools

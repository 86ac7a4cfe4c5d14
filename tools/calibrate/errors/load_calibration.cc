#include "tools/calibrate/errors/load_calibration.h"

#include <optional>
#include <utility>

#include "engine/calibration/calibrations.h"
#include "results/durable_file.h"

namespace tools {
namespace {

std::optional<std::filesystem::path> find_in(const sweep::Library& library,
                                             const std::string& name) {
  for (const auto& folder : library.folders()) {
    auto file = folder / "calibration" / (name + ".calibration");
    std::error_code ignored;
    if (std::filesystem::is_regular_file(file, ignored)) return file;
  }
  return std::nullopt;
}

engine::Result<CalibrationFile> load_named(const sweep::Library& library, const std::string& name) {
  const auto file = find_in(library, name);
  if (!file) return CalibrationFile{};
  return load_calibration_file(*file);
}

// A device's own sweep, with the transfer parameters for what it did not measure, as it speaks for `device`.
engine::Result<CalibrationFile> completed(CalibrationFile file, const engine::Device& device,
                                          const sweep::Library& library) {
  if (file.device == nullptr || file.device->tier != engine::Tier::measured) return file;
  const auto transfer = load_transfer(library);
  if (!transfer) return transfer.mistakes();
  file.device = std::make_shared<const engine::Calibration>(
      engine::completed_by(*file.device, *transfer ? **transfer : engine::Calibration{}));
  if (engine::speaking_for(*file.device, device) != file.device.get()) {
    // What one kernel does on another machine is worth no more than what the device's do.
    return CalibrationFile{.device = file.device->altered};
  }
  return file;
}

}  // namespace

engine::Result<CalibrationFile> load_calibration_file(const std::filesystem::path& file) {
  const auto text = results::read_file(file);
  if (!text) {
    return engine::Mistake{{file.string()}, "there is no such file", "check its name"};
  }
  CalibrationFile loaded;
  for (const std::string_view part : engine::calibrations_in(*text)) {
    auto calibration = engine::parse_calibration(part, file.string());
    if (!calibration) return calibration.mistakes();
    auto shared = std::make_shared<const engine::Calibration>(std::move(calibration).value());
    if (loaded.device == nullptr) {
      loaded.device = std::move(shared);
    } else {
      loaded.implementations.push_back(std::move(shared));
    }
  }
  return loaded;
}

engine::Result<SharedCalibration> load_transfer(const sweep::Library& library) {
  auto file = load_named(library, std::string(engine::kTransferName));
  if (!file) return file.mistakes();
  return std::move(file->device);
}

engine::Result<CalibrationFile> load_requested(const CalibrationRequest& request,
                                               const sweep::Library& library) {
  if (request.tier == "roofline") return CalibrationFile{};
  if (!request.file.empty()) {
    auto loaded = load_calibration_file(request.file);
    return loaded ? completed(std::move(*loaded), request.device, library) : loaded;
  }
  if (request.tier != "transfer") {
    auto measured = load_named(library, request.device.name);
    if (!measured) return measured;
    if (measured->device != nullptr) {
      return completed(std::move(*measured), request.device, library);
    }
    if (request.tier == "measured") {
      return engine::Mistake{{},
                             "no sweep of " + request.device.name + " is in the library",
                             "make one with 'llmsweep calibrate', or ask for '--tier transfer'"};
    }
  }
  auto transfer = load_transfer(library);
  if (!transfer) return transfer.mistakes();
  if (*transfer == nullptr && request.tier == "transfer") {
    return engine::Mistake{{}, "the library has no calibration/transfer.calibration", ""};
  }
  return CalibrationFile{.device = *transfer};
}

}  // namespace tools

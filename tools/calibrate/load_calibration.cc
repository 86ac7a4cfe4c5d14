#include "tools/calibrate/load_calibration.h"

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

engine::Result<SharedCalibration> load_named(const sweep::Library& library,
                                             const std::string& name) {
  const auto file = find_in(library, name);
  if (!file) return SharedCalibration{};
  return load_calibration_file(*file);
}

// A device's own sweep, with the transfer parameters for what it did not measure.
engine::Result<SharedCalibration> completed(SharedCalibration measured,
                                            const sweep::Library& library) {
  if (measured == nullptr || measured->tier != engine::Tier::measured) return measured;
  auto transfer = load_transfer(library);
  if (!transfer || *transfer == nullptr) return measured;
  return SharedCalibration(
      std::make_shared<const engine::Calibration>(engine::completed_by(*measured, **transfer)));
}

}  // namespace

engine::Result<SharedCalibration> load_calibration_file(const std::filesystem::path& file) {
  const auto text = results::read_file(file);
  if (!text) {
    return engine::Mistake{{file.string()}, "there is no such file", "check its name"};
  }
  auto calibration = engine::parse_calibration(*text, file.string());
  if (!calibration) return calibration.mistakes();
  return SharedCalibration(
      std::make_shared<const engine::Calibration>(std::move(calibration).value()));
}

engine::Result<SharedCalibration> load_transfer(const sweep::Library& library) {
  return load_named(library, std::string(engine::kTransferName));
}

engine::Result<SharedCalibration> load_requested(const CalibrationRequest& request,
                                                 const sweep::Library& library) {
  if (request.tier == "roofline") return SharedCalibration{};
  if (!request.file.empty()) {
    auto loaded = load_calibration_file(request.file);
    return loaded ? completed(*loaded, library) : loaded;
  }
  if (request.tier != "transfer") {
    auto measured = load_named(library, request.device);
    if (!measured) return measured;
    if (*measured != nullptr) return completed(*measured, library);
    if (request.tier == "measured") {
      return engine::Mistake{{},
                             "no sweep of " + request.device + " is in the library",
                             "make one with 'llmsweep calibrate', or ask for '--tier transfer'"};
    }
  }
  auto transfer = load_transfer(library);
  if (transfer && *transfer == nullptr && request.tier == "transfer") {
    return engine::Mistake{{}, "the library has no calibration/transfer.calibration", ""};
  }
  return transfer;
}

}  // namespace tools

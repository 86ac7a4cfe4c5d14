#include "tools/calibrate/engine_calibrations.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <memory>
#include <utility>

#include "tools/calibrate/kernel_table.h"

namespace tools {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The number or the text that `version` begins with, taken off it.
std::string_view next_part(std::string_view& version) {
  const bool digits = is_digit(version.front());
  std::size_t end = 0;
  while (end < version.size() && is_digit(version[end]) == digits) ++end;
  const std::string_view part = version.substr(0, end);
  version.remove_prefix(end);
  return part;
}

std::string_view maker(std::string_view engine) { return engine.substr(0, engine.find('_')); }

}  // namespace

std::string_view engine_in(std::string_view impl) {
  const std::size_t colon = impl.find(':');
  if (colon == std::string_view::npos || is_kernel_library(impl)) return {};
  return impl.substr(0, colon);
}

bool older_version(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    const std::string_view left = next_part(a), right = next_part(b);
    if (left == right) continue;
    if (!is_digit(left.front()) || !is_digit(right.front())) return left < right;
    return std::pair(left.size(), left) < std::pair(right.size(), right);
  }
  return a.empty() && !b.empty();
}

engine::Result<std::vector<EngineCalibration>> load_engines(const sweep::Library& library,
                                                            const engine::Calibration& transfer) {
  std::vector<EngineCalibration> engines;
  for (const std::filesystem::path& folder : library.folders()) {
    const auto place = folder / "calibration" / "engines";
    if (!std::filesystem::is_directory(place)) continue;
    for (const auto& file : std::filesystem::directory_iterator(place)) {
      if (file.path().extension() != ".calibration") continue;
      const auto loaded = load_calibration_file(file.path());
      if (!loaded) return loaded.mistakes();
      engines.push_back({(*loaded)->name, std::make_shared<const engine::Calibration>(
                                              engine::completed_by(**loaded, transfer))});
    }
    break;  // the first folder that has engines, as for every name of a library
  }
  std::ranges::sort(engines, older_version, &EngineCalibration::engine);
  return engines;
}

TablePredictor::TablePredictor(const engine::Device& device, SharedCalibration plain,
                               std::vector<EngineCalibration> engines)
    : calibration_(std::move(plain)),
      engines_(std::move(engines)),
      plain_(device, calibration_.get()) {
  for (const EngineCalibration& engine : engines_) {
    predictors_.emplace_back(device, engine.calibration.get());
  }
}

const Predictor& TablePredictor::of(std::string_view impl) const {
  const std::string_view engine = engine_in(impl);
  const Predictor* nearest = &plain_;
  for (std::size_t i = 0; i < engines_.size() && !engine.empty(); ++i) {
    if (maker(engines_[i].engine) != maker(engine)) continue;
    // The newest that is not newer, or the oldest there is.
    if (nearest == &plain_ || !older_version(engine, engines_[i].engine)) nearest = &predictors_[i];
  }
  return *nearest;
}

}  // namespace tools

#include "tools/calibrate/engine_calibrations.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <memory>
#include <utility>

#include "tools/calibrate/call_names.h"

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

// "vllm_0.24.0:vllm_default" is made by "vllm", of version "vllm_0.24.0", and has the kernel "vllm_default".
std::string_view version_in(std::string_view impl) { return impl.substr(0, impl.find(':')); }
std::string_view maker(std::string_view impl) {
  const std::string_view version = version_in(impl);
  return version.substr(0, version.find('_'));
}
std::string_view kernel_in(std::string_view impl) {
  const std::size_t colon = impl.find(':');
  return colon == std::string_view::npos ? std::string_view{} : impl.substr(colon + 1);
}

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
      engines.push_back(
          {loaded->device->name, std::make_shared<const engine::Calibration>(
                                     engine::completed_by(*loaded->device, transfer))});
    }
    break;  // the first folder that has engines, as for every name of a library
  }
  return engines;
}

TablePredictor::TablePredictor(const engine::Device& device, SharedCalibration plain,
                               std::vector<EngineCalibration> engines)
    : calibration_(std::move(plain)),
      engines_(std::move(engines)),
      plain_(device, calibration_.get()) {
  std::ranges::sort(engines_, older_version, &EngineCalibration::engine);
  for (const EngineCalibration& engine : engines_) {
    predictors_.emplace_back(device, engine.calibration.get());
  }
}

RowPredictor TablePredictor::of(std::string_view impl) const {
  const std::string name = lower_case(impl);
  const std::string_view engine = engine_in(name);
  const Predictor* nearest = &plain_;
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    const std::string have = lower_case(engines_[i].engine);
    if (have == name) return {predictors_[i], plain_};
    if (engine.empty() || maker(have) != maker(engine)) continue;
    if (!kernel_in(have).empty() && kernel_in(have) != kernel_in(name)) continue;
    // The newest that is not newer, or the oldest there is.
    if (nearest == &plain_ || !older_version(engine, version_in(have))) nearest = &predictors_[i];
  }
  return {*nearest, plain_};
}

}  // namespace tools

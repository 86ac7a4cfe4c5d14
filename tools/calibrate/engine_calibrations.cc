#include "tools/calibrate/engine_calibrations.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
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

// "sglang_0.5.14:triton" in two.
std::string_view version_of(std::string_view name) { return name.substr(0, name.find(':')); }
std::string_view kernel_of(std::string_view name) {
  const std::size_t colon = name.find(':');
  return colon == std::string_view::npos ? std::string_view() : name.substr(colon + 1);
}

// Versions of an engine differ more than relatives of a device: between neighbours of two engines, half
// of the rows left the interval, and with logarithms so much wider nine in ten stay.
constexpr double kOtherVersion = 2.5;

engine::Calibration with_wide_intervals(engine::Calibration calibration) {
  engine::Calibration::sections(calibration, [](const std::string&, auto& sets, auto&&) {
    for (auto& set : sets) {
      set.low = std::pow(set.low, kOtherVersion);
      set.high = std::pow(set.high, kOtherVersion);
    }
  });
  return calibration;
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

engine::Result<std::vector<EngineCalibration>> load_engines(const sweep::Library& library) {
  std::vector<EngineCalibration> engines;
  for (const std::filesystem::path& folder : library.folders()) {
    const auto place = folder / "calibration" / "engines";
    if (!std::filesystem::is_directory(place)) continue;
    for (const auto& file : std::filesystem::directory_iterator(place)) {
      if (file.path().extension() != ".calibration") continue;
      auto loaded = load_calibration_file(file.path());
      if (!loaded) return loaded.mistakes();
      engines.push_back({(*loaded)->name, std::move(loaded).value()});
    }
    break;  // the first folder that has engines, as for every name of a library
  }
  std::ranges::sort(engines, {}, &EngineCalibration::engine);
  return engines;
}

TablePredictor::TablePredictor(const engine::Device& device, SharedCalibration plain)
    : TablePredictor(device, std::move(plain), {}, {}) {}

TablePredictor::TablePredictor(const engine::Device& device, SharedCalibration plain,
                               std::vector<EngineCalibration> engines, SharedCalibration transfer)
    : device_(device),
      plain_(std::move(plain)),
      engines_(std::move(engines)),
      transfer_(std::move(transfer)) {}

SharedCalibration TablePredictor::gathered(std::string_view impl) const {
  const std::string_view engine = engine_in(impl), kernel = kernel_of(impl);
  std::vector<const EngineCalibration*> speaking;
  for (const EngineCalibration& candidate : engines_) {
    const std::string_view its_kernel = kernel_of(candidate.engine);
    const bool relevant = its_kernel.empty() || its_kernel == kernel;
    if (!engine.empty() && relevant && maker(candidate.engine) == maker(engine)) {
      speaking.push_back(&candidate);
    }
  }
  if (speaking.empty()) return plain_;
  std::ranges::stable_sort(speaking, [&](const auto* a, const auto* b) {
    const auto order = [&](const EngineCalibration& candidate) {
      return std::pair(kernel_of(candidate.engine).empty(), version_of(candidate.engine) != engine);
    };
    if (order(*a) != order(*b)) return order(*a) < order(*b);
    return older_version(version_of(b->engine), version_of(a->engine));
  });
  engine::Calibration all;
  for (const EngineCalibration* part : speaking) {
    const bool same = version_of(part->engine) == engine;
    all = engine::completed_by(std::move(all),
                               same ? *part->calibration : with_wide_intervals(*part->calibration));
  }
  if (transfer_ != nullptr) all = engine::completed_by(std::move(all), *transfer_);
  return std::make_shared<const engine::Calibration>(std::move(all));
}

const Predictor& TablePredictor::of(std::string_view impl) {
  const auto known = made_.find(impl);
  if (known != made_.end()) return known->second.predictor;
  SharedCalibration calibration = gathered(impl);
  const Predictor predictor(device_, calibration.get());
  return made_.try_emplace(std::string(impl), Made{std::move(calibration), predictor})
      .first->second.predictor;
}

}  // namespace tools

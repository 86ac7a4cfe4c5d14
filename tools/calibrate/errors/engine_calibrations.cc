#include "tools/calibrate/errors/engine_calibrations.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <memory>
#include <utility>

#include "tools/calibrate/tables/call_names.h"

namespace tools {
namespace {

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

// Versions of an engine differ more than relatives of a device: between neighbours of two engines, half
// of the rows left the interval, and logarithms so much wider would hold nine in ten if errors were normal.
constexpr double kOtherVersion = 2.5;

engine::Calibration with_wide_intervals(engine::Calibration calibration) {
  engine::Calibration::sections(calibration, [](const std::string&, auto& sets) {
    sets.each_edit([](engine::ParameterSet, auto& set) {
      set.low = std::pow(set.low, kOtherVersion);
      set.high = std::pow(set.high, kOtherVersion);
    });
  });
  return calibration;
}

// Those that may speak for the implementation `name`, the best first.
std::vector<const EngineCalibration*> speaking_for(std::string_view name,
                                                   const std::vector<EngineCalibration>& all) {
  struct Candidate {
    const EngineCalibration* calibration;
    std::string name;
  };
  std::vector<Candidate> candidates;
  for (const EngineCalibration& one : all) {
    std::string have = lower_case(one.engine);
    const bool kernel = kernel_in(have).empty() || kernel_in(have) == kernel_in(name);
    const bool related = !engine_in(name).empty() && maker(have) == maker(name);
    if (have == name || (related && kernel)) candidates.push_back({&one, std::move(have)});
  }
  std::ranges::sort(candidates, [&](const Candidate& a, const Candidate& b) {
    const auto order = [&](const Candidate& one) {
      return std::pair(kernel_in(one.name).empty(), version_in(one.name) != version_in(name));
    };
    if (order(a) != order(b)) return order(a) < order(b);
    return older_version(version_in(b.name), version_in(a.name));
  });
  std::vector<const EngineCalibration*> best_first;
  for (const Candidate& one : candidates) best_first.push_back(one.calibration);
  return best_first;
}

SharedCalibration joined(const std::vector<const EngineCalibration*>& best_first,
                         std::string_view name, const SharedCalibration& rest) {
  engine::Calibration all;
  for (const EngineCalibration* one : best_first) {
    const bool same = version_in(lower_case(one->engine)) == version_in(name);
    all = engine::completed_by(std::move(all),
                               same ? *one->calibration : with_wide_intervals(*one->calibration));
  }
  if (rest != nullptr) all = engine::completed_by(std::move(all), *rest);
  return std::make_shared<const engine::Calibration>(std::move(all));
}

engine::Result<std::vector<EngineCalibration>> load_folder(const std::filesystem::path& folder) {
  std::vector<EngineCalibration> engines;
  if (!std::filesystem::is_directory(folder)) return engines;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".calibration") continue;
    const auto loaded = load_calibration_file(file.path());
    if (!loaded) return loaded.mistakes();
    engines.push_back({loaded->device->name, loaded->device});
  }
  return engines;
}

// The folder of engines' calibrations: the first of the library's folders that has any, as for every name of a library.
std::filesystem::path engines_folder(const sweep::Library& library) {
  for (const std::filesystem::path& folder : library.folders()) {
    const auto engines = folder / "calibration" / "engines";
    if (std::filesystem::is_directory(engines)) return engines;
  }
  return {};
}

}  // namespace

engine::Result<std::vector<EngineCalibration>> load_engines(const sweep::Library& library,
                                                            const engine::Calibration& transfer) {
  auto engines = load_folder(engines_folder(library));
  if (!engines) return engines;
  for (EngineCalibration& one : *engines) {
    one.calibration = std::make_shared<const engine::Calibration>(
        engine::completed_by(*one.calibration, transfer));
  }
  return engines;
}

engine::Result<std::vector<EngineCalibration>> load_engine_rows(
    const std::filesystem::path& folder) {
  return load_folder(folder);
}

TablePredictor::TablePredictor(const engine::Device& device, SharedCalibration plain,
                               TableEngines engines)
    : device_(device), plain_(std::move(plain)), engines_(std::move(engines)) {}

SharedCalibration TablePredictor::gathered(std::string_view impl) const {
  const std::string name = lower_case(impl);
  const auto swept = speaking_for(name, engines_.swept);
  if (!swept.empty()) return joined(swept, name, plain_);
  const auto known = speaking_for(name, engines_.known);
  return known.empty() ? plain_ : joined(known, name, engines_.transfer);
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

#include "tools/calibrate/fit/fit_section.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "engine/base/check.h"
#include "tools/calibrate/tables/predict.h"

namespace tools {
namespace {

constexpr double kMostError = 0.7;  // log of two

// Parameters that these samples leave open.
std::vector<std::string_view> open_parameters(const std::vector<const Sample*>& samples) {
  const auto engines = std::size_t(std::ranges::count_if(
      samples, [](const Sample* sample) { return timed_by_engine(*sample); }));
  if (engines == 0) {
    return {"engine_floor_clocks", "quantize_floor", "quantize_memory_share", "quantize_row"};
  }
  if (engines == samples.size()) return {"engine_floor_clocks", "quantize_floor"};
  return {};
}

// The parameters of one set that are searched, and where they are kept.
struct Searched {
  std::vector<Unknown> unknowns;
  std::vector<double*> places;
};

Searched searched_parameters(engine::Calibration& calibration, const std::string& section,
                             engine::ParameterSet set, const FitOptions& options,
                             const std::vector<std::string_view>& open) {
  const auto among = [](const auto& names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  Searched searched;
  engine::Calibration::sections(calibration, [&](const std::string& name, auto& sets) {
    if (name != section) return;
    engine::each_parameter(sets.edit(set).fit, [&](const auto& parameter, double& value) {
      const engine::SearchRange& range = parameter.search;
      const bool kept = !options.searched.empty() && !among(options.searched, parameter.name);
      if (range.empty() || kept || among(open, parameter.name)) return;
      const double from =
          options.start == Start::present ? std::clamp(value, range.low, range.high) : range.start;
      searched.unknowns.push_back({std::string(parameter.name), from, range.low, range.high});
      searched.places.push_back(&value);
    });
  });
  return searched;
}

// At most `most` samples, evenly from the list.
std::vector<const Sample*> thinned(const std::vector<Sample>& samples, std::size_t most) {
  std::vector<const Sample*> chosen;
  const std::size_t count = std::min(samples.size(), most);
  for (std::size_t i = 0; i < count; ++i) chosen.push_back(&samples[i * samples.size() / count]);
  return chosen;
}

}  // namespace

bool timed_by_engine(const Sample& sample) {
  if (const auto* gemm = std::get_if<engine::Gemm>(&sample.op)) return gemm->quantizes_input;
  if (const auto* prompt = std::get_if<engine::AttentionPrefill>(&sample.op)) {
    return prompt->stores_kv;
  }
  const auto* decode = std::get_if<engine::AttentionDecode>(&sample.op);
  return decode != nullptr && decode->stores_kv;
}

double fit_section(engine::Calibration& calibration, const std::string& section,
                   engine::ParameterSet set, const std::vector<Sample>& samples,
                   const FitOptions& options) {
  const std::vector<const Sample*> chosen = thinned(samples, options.most_samples);
  const Searched searched =
      searched_parameters(calibration, section, set, options, open_parameters(chosen));
  engine::check(!searched.unknowns.empty(), "a section of the calibration has parameters");
  std::map<const engine::Device*, Predictor> predictors;
  for (const Sample* sample : chosen) {
    predictors.try_emplace(sample->device, *sample->device, &calibration);
  }
  const auto put = [&](std::span<const double> point) {
    for (std::size_t i = 0; i < point.size(); ++i) *searched.places[i] = point[i];
  };
  const auto loss = [&](std::span<const double> point) {
    put(point);
    double sum = 0;
    for (const Sample* sample : chosen) {
      const double predicted = predictors.at(sample->device)(sample->family, sample->op).seconds;
      sum += std::min(std::abs(std::log(sample->seconds / predicted)), kMostError);
    }
    return sum / double(chosen.size());
  };
  const Minimum minimum = minimise(loss, searched.unknowns, options.search);
  put(minimum.point);
  return minimum.value;
}

}  // namespace tools

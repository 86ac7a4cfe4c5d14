#include "tools/calibrate/fit/shared_set.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>

#include "engine/kernels/kernel_time.h"

namespace tools {
namespace {

using engine::ParameterSet;

struct DeviceMeans {
  double launch = 0;   // us
  double link = 0;     // inside a node
  double adapter = 0;  // between nodes
};

DeviceMeans means_of(const std::vector<const engine::Device*>& devices) {
  DeviceMeans means;
  const double share = 1 / double(devices.size());
  for (const engine::Device* device : devices) {
    means.launch += share * device->launch_latency.value * 1e6;
    means.link += share * device->scale_up.latency.value * 1e6;
    means.adapter += share * device->scale_out.latency.value * 1e6;
  }
  return means;
}

// visit(the section's own set), with its type.
template <class Calibration, class Visit>
void with_own_set(Calibration& calibration, const std::string& section, Visit&& visit) {
  engine::Calibration::sections(calibration, [&](const std::string& name, auto& sets) {
    if (name != section) return;
    if constexpr (std::is_const_v<Calibration>) {
      visit(*sets.find(ParameterSet::own));
    } else {
      visit(sets.edit(ParameterSet::own));
    }
  });
}

void begin(engine::Calibration& calibration, const std::string& section, const DeviceMeans& means,
           double query_rows) {
  with_own_set(calibration, section, [&](auto& own) {
    using Fit = std::remove_cvref_t<decltype(own.fit)>;
    own.launch = means.launch;
    own.fit = Fit{};
    if constexpr (std::is_same_v<Fit, engine::PrefillFit>) own.fit.tile_rows = query_rows;
    if constexpr (std::is_same_v<Fit, engine::CollectiveFit>) own.fit.link_latency = means.link;
    if constexpr (std::is_same_v<Fit, engine::BetweenFit>) own.fit.link_latency = means.adapter;
  });
}

// Sizes the samples cover.
engine::Envelope envelope_of(const std::vector<Sample>& samples) {
  engine::Envelope envelope;
  for (const Sample& sample : samples) {
    const engine::Coordinates shape = engine::coordinates_of(sample.family, sample.op);
    for (std::size_t i = 0; i < shape.count; ++i) {
      const double value = shape.value[i];
      envelope.low[i] = envelope.known ? std::min(envelope.low[i], value) : value;
      envelope.high[i] = envelope.known ? std::max(envelope.high[i], value) : value;
    }
    envelope.known = true;
  }
  return envelope;
}

// A third of an attention floor is the kernel's where both were measured (H100 with, H200 without the
// engine), in prompts as in decodes.
constexpr double kKernelShare = 1.0 / 3;

// The engine's share of a floor that only engines' tables speak for.
void settle_floor(engine::Calibration& calibration, const std::string& section,
                  const DeviceMeans& means) {
  with_own_set(calibration, section, [&](auto& own) {
    if constexpr (requires { own.fit.engine_floor_clocks; }) {
      own.fit.engine_floor_clocks = own.fit.floor_clocks * (1 - kKernelShare);
    }
    if constexpr (requires { own.fit.quantize_floor; }) {
      own.fit.quantize_floor = std::max(0.0, own.fit.floor - means.launch);
    }
  });
}

// To five digits: more would pretend.
double rounded(double value) { return std::stod(fmt::format("{:.5g}", value)); }

}  // namespace

bool is_engines(const std::vector<Sample>& samples) {
  return std::ranges::any_of(samples, &timed_by_engine);
}

engine::Calibration fit_shared_set(const std::string& section, const std::vector<Sample>& samples,
                                   const std::vector<const engine::Device*>& devices,
                                   const MinimiseOptions& search) {
  const DeviceMeans means = means_of(devices);
  engine::Calibration calibration;
  const auto fit = [&](double query_rows) {
    begin(calibration, section, means, query_rows);
    return fit_section(calibration, section, ParameterSet::own, samples,
                       {.start = Start::neutral, .most_samples = samples.size(), .search = search});
  };
  const double wide = fit(128);
  if (section.find("prefill") != std::string::npos) {
    // Tile heights are a choice between two: take the better.
    const engine::Calibration first = calibration;
    if (fit(64) > wide) calibration = first;
  }
  if (std::ranges::all_of(samples, &timed_by_engine)) settle_floor(calibration, section, means);
  see_only(calibration, section, samples);
  return calibration;
}

void see_only(engine::Calibration& calibration, const std::string& section,
              const std::vector<Sample>& samples) {
  with_own_set(calibration, section, [&](auto& own) { own.envelope = envelope_of(samples); });
}

void keep_shared_set(const engine::Calibration& from, const std::string& section, ParameterSet set,
                     const Interval& interval, engine::Calibration& into) {
  with_own_set(from, section, [&](const auto& own) {
    using Own = std::remove_cvref_t<decltype(own)>;
    engine::Calibration::sections(into, [&](const std::string& name, auto& sets) {
      if constexpr (std::is_same_v<typename std::remove_cvref_t<decltype(sets)>::Set, Own>) {
        if (name != section) return;
        Own& kept = sets.edit(set);
        kept = own;
        kept.tier = engine::Tier::transfer;
        kept.low = rounded(interval.low);
        kept.high = rounded(interval.high);
        engine::each_parameter(kept.fit,
                               [](const auto&, double& value) { value = rounded(value); });
      }
    });
  });
}

}  // namespace tools

#include "tools/calibrate/fit/shared_set.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

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

// How a kernel for prompts shares out its queries: a choice among few, and no quantity to search along.
struct QueryTile {
  double rows = 128;
  double packed_heads = 1;
};

// Tiles that a fit chooses from. Whether heads that share keys share a tile is a habit of one generation's kernels, and says nothing of
// another's: wider sets let them.
std::vector<QueryTile> query_tiles(const SharedCalls& calls) {
  if (calls.section.find("prefill") == std::string::npos) return {{}};
  std::vector<QueryTile> tiles{{128, 1}, {64, 1}};
  if (is_generation(calls.set)) tiles.insert(tiles.end(), {{128, 0}, {64, 0}});
  return tiles;
}

void begin(engine::Calibration& calibration, const std::string& section, const DeviceMeans& means,
           const QueryTile& tile) {
  with_own_set(calibration, section, [&](auto& own) {
    using Fit = std::remove_cvref_t<decltype(own.fit)>;
    own.launch = means.launch;
    own.fit = Fit{};
    if constexpr (std::is_same_v<Fit, engine::PrefillFit>) {
      own.fit.tile_rows = tile.rows;
      own.fit.packed_heads = tile.packed_heads;
    }
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

// What the format changes of a product's form.
constexpr std::array<std::string_view, 4> kOfFormat = {"compute_share", "floor",
                                                       "quantize_memory_share", "quantize_row"};

// Copies the own form of one section into another one of the same family.
void take_form(const engine::Calibration& from, const std::string& section,
               engine::Calibration& into, const std::string& other) {
  with_own_set(from, section, [&](const auto& own) {
    with_own_set(into, other, [&](auto& mine) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(mine)>,
                                   std::remove_cvref_t<decltype(own)>>) {
        mine.fit = own.fit;
        mine.launch = own.launch;
      }
    });
  });
}

// Fitted with each tile in turn: the best is kept.
engine::Calibration best_of_tiles(const SharedCalls& calls, const DeviceMeans& means,
                                  const FitOptions& options) {
  engine::Calibration best;
  double least = std::numeric_limits<double>::infinity();
  for (const QueryTile& tile : query_tiles(calls)) {
    engine::Calibration trial;
    begin(trial, calls.section, means, tile);
    const double left =
        fit_section(trial, calls.section, ParameterSet::own, calls.samples, options);
    if (left >= least) continue;
    least = left;
    best = std::move(trial);
  }
  return best;
}

// The form of the products in 16 bits, with what the format changes fitted to the calls.
engine::Calibration fit_as_wide(const SharedCalls& calls, const SharedCalls& wide,
                                FitOptions options) {
  engine::Calibration calibration;
  take_form(fit_shared_set(wide, {}, options.search), wide.section, calibration, calls.section);
  options.start = Start::present;
  options.searched = kOfFormat;
  fit_section(calibration, calls.section, ParameterSet::own, calls.samples, options);
  return calibration;
}

}  // namespace

double rounded(double value) { return std::stod(fmt::format("{:.5g}", value)); }

bool is_generation(ParameterSet set) {
  return std::ranges::find(kGenerations, set) != kGenerations.end();
}

bool is_engines(const std::vector<Sample>& samples) {
  return std::ranges::any_of(samples, &timed_by_engine);
}

engine::Calibration fit_shared_set(const SharedCalls& calls, const SharedCalls& wide,
                                   const MinimiseOptions& search) {
  const std::string& section = calls.section;
  const std::vector<Sample>& samples = calls.samples;
  const DeviceMeans means = means_of(calls.devices);
  const bool by_engines = std::ranges::all_of(samples, &timed_by_engine);
  const FitOptions options{
      .start = Start::neutral, .most_samples = samples.size(), .search = search};
  engine::Calibration calibration;
  if (by_engines && !wide.samples.empty()) {
    calibration = fit_as_wide(calls, wide, options);
  } else {
    calibration = best_of_tiles(calls, means, options);
  }
  if (by_engines) settle_floor(calibration, section, means);
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

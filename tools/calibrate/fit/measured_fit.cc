#include "tools/calibrate/fit/measured_fit.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <type_traits>
#include <utility>

#include "engine/base/random.h"
#include "engine/kernels/kernel_time.h"
#include "engine/kernels/own_slot.h"
#include "tools/calibrate/fit/fit_section.h"
#include "tools/calibrate/fit/folds.h"
#include "tools/calibrate/fit/in_parallel.h"
#include "tools/calibrate/fit/tree_fit.h"
#include "tools/calibrate/tables/predict.h"
#include "tools/calibrate/tables/quantile.h"
#include "tools/calibrate/tables/table_families.h"

namespace tools {
namespace {

constexpr std::uint64_t kFoldSeed = 20;

// Calls of one section, with what they are grouped by in the split by unseen shapes.
struct CallGroup {
  std::string name;
  std::vector<Sample> samples;
  std::vector<std::vector<double>> shapes;
};

// What a model fixes, as opposed to what a batch does: weight shapes, head layouts, widths, ranks.
std::vector<double> fixed_shape(const KernelCall& call) {
  constexpr Size fixed[] = {Size::n,        Size::k,       Size::q_heads, Size::kv_heads,
                            Size::head_dim, Size::window,  Size::hidden,  Size::inter,
                            Size::topk,     Size::experts, Size::tp,      Size::ep,
                            Size::ranks};
  std::vector<double> shape;
  for (const Size size : fixed) shape.push_back(call[size]);
  return shape;
}

// What the fitted form leaves over. Calls that the calibration cannot tell apart (rotary kernels of
// different head layouts and equal bytes) share their median.
std::vector<engine::MeasuredPoint> measured_points(const std::vector<Sample>& samples,
                                                   const Predictor& base) {
  std::map<std::array<double, engine::kMostCoordinates>, std::vector<double>> residuals;
  std::size_t count = 0;
  for (const Sample& sample : samples) {
    const engine::Coordinates shape = engine::coordinates_of(sample.family, sample.op);
    count = shape.count;
    residuals[shape.value].push_back(
        std::log(sample.seconds / base(sample.family, sample.op).seconds));
  }
  std::vector<engine::MeasuredPoint> points;
  for (auto& [value, left] : residuals) {
    // A billionth: digits that no measurement has would make the file half as long again.
    const double residual = std::round(quantile(left, 0.5) * 1e9) / 1e9;
    points.push_back({.shape = {value, count}, .residual = residual});
  }
  return points;
}

engine::Envelope envelope_of(const std::vector<engine::MeasuredPoint>& points) {
  engine::Envelope envelope{
      .low = points.front().shape.value, .high = points.front().shape.value, .known = true};
  for (const engine::MeasuredPoint& point : points) {
    for (std::size_t i = 0; i < point.shape.count; ++i) {
      envelope.low[i] = std::min(envelope.low[i], point.shape.value[i]);
      envelope.high[i] = std::max(envelope.high[i], point.shape.value[i]);
    }
  }
  return envelope;
}

// The parameters of prompts' attention, where the section is one of those.
engine::PrefillFit* own_prefill(engine::Calibration& calibration, const std::string& section) {
  engine::PrefillFit* found = nullptr;
  engine::Calibration::sections(calibration, [&](const std::string& name, auto& sets) {
    using Sets = std::remove_cvref_t<decltype(sets)>;
    if constexpr (std::is_same_v<Sets, engine::FittedSets<engine::PrefillFit>>) {
      if (name == section) found = &sets.edit(engine::ParameterSet::own).fit;
    }
  });
  return found;
}

// Tiles are no numbers to search along: each kind is fitted, and the best is kept.
void fit_form(engine::Calibration& calibration, const std::string& section,
              const std::vector<Sample>& samples) {
  engine::PrefillFit* prefill = own_prefill(calibration, section);
  if (prefill == nullptr) {
    fit_section(calibration, section, engine::ParameterSet::own, samples, {});
    return;
  }
  const engine::PrefillFit start = *prefill;
  engine::PrefillFit kept = start;
  double least = std::numeric_limits<double>::infinity();
  for (const double rows : {64, 128}) {
    for (const double packed : {0, 1}) {
      *prefill = start;
      prefill->tile_rows = rows;
      prefill->packed_heads = packed;
      const double left = fit_section(calibration, section, engine::ParameterSet::own, samples, {});
      if (left >= least) continue;
      least = left;
      kept = *prefill;
    }
  }
  *prefill = kept;
}

engine::OwnSlot own_slot(engine::Calibration& calibration, const std::vector<Sample>& samples) {
  const Sample& first = samples.front();
  return engine::own_slot(calibration, first.family, first.op, *first.device);
}

// What the section's form leaves over, as trees and points.
void fit_rest(engine::Calibration& calibration, const std::vector<Sample>& samples) {
  const engine::OwnSlot slot = own_slot(calibration, samples);
  slot.facts->points = {};
  auto points = measured_points(samples, {*samples.front().device, &calibration});
  slot.facts->envelope = envelope_of(points);
  auto trees = fit_trees(points, slot.coordinates.features,
                         double(samples.front().device->multiprocessors), {});
  slot.facts->points = engine::PointSet(std::move(points), slot.coordinates, std::move(trees));
}

// Fits the section of `calibration` to the samples: parameters, then trees, then points.
void fit_to(engine::Calibration& calibration, const std::string& section,
            const std::vector<Sample>& samples) {
  engine::SetFacts& facts = *own_slot(calibration, samples).facts;
  facts.points = {};
  facts.tier = engine::Tier::measured;
  facts.launch = samples.front().device->launch_latency.value * 1e6;
  fit_form(calibration, section, samples);
  fit_rest(calibration, samples);
}

// Predictions of samples by a fit that has not seen them; fold[i] says with which others sample i is left
// out. A quick check leaves out the first fold only and takes the form of `start` as fitted to all.
std::vector<Scored> held_out(const engine::Calibration& start, const CallGroup& section,
                             std::vector<std::size_t> fold, Checks checks) {
  const bool quick = checks == Checks::quick;
  std::vector<Scored> scored(section.samples.size());
  for (std::size_t left = 0; left < (quick ? 1 : kFolds); ++left) {
    std::vector<Sample> seen;
    for (std::size_t i = 0; i < fold.size(); ++i) {
      if (fold[i] != left) seen.push_back(section.samples[i]);
    }
    if (seen.empty() || seen.size() == fold.size()) continue;
    engine::Calibration trial = start;
    if (quick) {
      fit_rest(trial, seen);
    } else {
      fit_to(trial, section.name, seen);
    }
    const Predictor predict(*seen.front().device, &trial);
    for (std::size_t i = 0; i < fold.size(); ++i) {
      if (fold[i] != left) continue;
      const Sample& sample = section.samples[i];
      scored[i] = {.measured = sample.seconds,
                   .predicted = predict(sample.family, sample.op).seconds};
    }
  }
  // The interval of each fold comes from the other folds' errors; of a single one, from its other half.
  if (quick) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < fold.size(); ++i) {
      if (scored[i].predicted > 0) fold[i] = next++ % 2;
    }
  }
  for (std::size_t left = 0; left < kFolds; ++left) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < fold.size(); ++i) {
      if (fold[i] != left && scored[i].predicted > 0) {
        ratios.push_back(scored[i].measured / scored[i].predicted);
      }
    }
    const double low = quantile(ratios, 0.05), high = quantile(ratios, 0.95);
    for (std::size_t i = 0; i < fold.size(); ++i) {
      if (fold[i] != left) continue;
      scored[i].lo = scored[i].predicted * low;
      scored[i].hi = scored[i].predicted * high;
    }
  }
  std::erase_if(scored, [](const Scored& row) { return row.predicted <= 0; });
  return scored;
}

std::size_t random_fold(std::size_t number) {
  return std::size_t(engine::random_bits(kFoldSeed, engine::Stream::sampling, number) % kFolds);
}

std::vector<std::size_t> random_folds(const CallGroup& section) {
  std::vector<std::size_t> fold(section.samples.size());
  for (std::size_t i = 0; i < fold.size(); ++i) fold[i] = random_fold(i);
  return fold;
}

std::vector<Scored> scored_by(const Predictor& predict, const std::vector<Sample>& samples) {
  std::vector<Scored> scored;
  for (const Sample& sample : samples) {
    const Prediction prediction = predict(sample.family, sample.op);
    scored.push_back({sample.seconds, prediction.seconds, prediction.lo, prediction.hi});
  }
  return scored;
}

// Nine starts of a machine in ten are within this of the one that was swept, as a logarithm: three starts of
// one H200 differ by up to 5% in products and 3% in attention, at equal clocks.
constexpr double kStarts = 0.04;

double widened(double log_ratio) { return std::hypot(log_ratio, kStarts); }

// Sets the interval from errors on calls that the fits had not seen, and what another start adds.
void set_interval(engine::SetFacts& facts, const std::vector<Scored>& random,
                  const std::vector<Scored>& unseen) {
  std::vector<double> ratios;
  for (const auto* rows : {&random, &unseen}) {
    for (const Scored& row : *rows) ratios.push_back(row.measured / row.predicted);
  }
  facts.low = std::exp(-widened(std::log(quantile(ratios, 0.05))));
  facts.high = std::exp(widened(std::log(quantile(ratios, 0.95))));
}

// Calls by section, without those that cannot be fitted; `left_out` says which.
std::vector<CallGroup> sections_of(const std::vector<MeasuredCall>& calls,
                                   const engine::Device& device, const engine::Calibration& start,
                                   std::vector<std::string>& left_out) {
  engine::Calibration working = start;
  std::map<std::string, CallGroup> found;
  std::map<std::string, std::size_t> unmodelled;
  for (const MeasuredCall& measured : calls) {
    const KernelCall& call = measured.call;
    Sample sample{call.family, op_of(call), &device, measured.seconds};
    const engine::OwnSlot slot = engine::own_slot(working, call.family, sample.op, device);
    if (slot.facts == nullptr) {
      ++unmodelled[std::string(engine::name_of(call.family))];
      continue;
    }
    const std::string name = slot.section.substr(0, slot.section.rfind('/'));
    CallGroup& section = found[name];
    section.name = name;
    section.samples.push_back(std::move(sample));
    section.shapes.push_back(fixed_shape(call));
  }
  for (const auto& [family, count] : unmodelled) {
    left_out.push_back(fmt::format("{}: {} calls, no form to calibrate", family, count));
  }
  std::vector<CallGroup> sections;
  for (auto& [name, section] : found) {
    if (section.samples.size() >= kLeastCalls) {
      sections.push_back(std::move(section));
      continue;
    }
    left_out.push_back(fmt::format("{}: {} calls, and at least {} are needed", name,
                                   section.samples.size(), kLeastCalls));
  }
  return sections;
}

// Many calls need no second look at every one of them.
constexpr std::size_t kMostThorough = 8000;

SectionErrors fit_one(const CallGroup& section, const engine::Device& device,
                      const engine::Calibration& start, Checks checks,
                      engine::Calibration& fitted) {
  SectionErrors errors{.section = section.name, .calls = section.samples.size()};
  errors.before = error_summary(scored_by(Predictor(device, &start), section.samples));
  if (section.samples.size() > kMostThorough) checks = Checks::quick;
  fitted = start;
  fit_to(fitted, section.name, section.samples);
  const engine::Calibration& from = checks == Checks::quick ? fitted : start;
  const auto random = held_out(from, section, random_folds(section), checks);
  const auto unseen = held_out(from, section, folds_by_shape(section.shapes), checks);
  errors.random = error_summary(random);
  errors.unseen = error_summary(unseen);
  set_interval(*own_slot(fitted, section.samples).facts, random, unseen);
  return errors;
}

// What a device's own file holds of a section: the rest comes from the transfer parameters when it is
// loaded.
void keep_own_set(engine::Calibration& from, const std::string& section,
                  engine::Calibration& into) {
  constexpr auto own = engine::ParameterSet::own;
  engine::Calibration::sections(from, [&](const std::string& name, auto& source) {
    if (name != section) return;
    engine::Calibration::sections(into, [&](const std::string& other, auto& sets) {
      if constexpr (std::is_same_v<decltype(sets), decltype(source)>) {
        if (other == section) sets.edit(own) = *source.find(own);
      }
    });
  });
}

}  // namespace

MeasuredFit fit_measured(const std::vector<MeasuredCall>& calls, const engine::Device& device,
                         const engine::Calibration& start, Checks checks) {
  MeasuredFit result;
  engine::Calibration swept = start;
  swept.measured_on = device;
  const std::vector<CallGroup> sections = sections_of(calls, device, swept, result.left_out);
  std::vector<engine::Calibration> parts(sections.size());
  result.errors.resize(sections.size());
  in_parallel(sections.size(), [&](std::size_t i) {
    result.errors[i] = fit_one(sections[i], device, swept, checks, parts[i]);
  });
  for (std::size_t i = 0; i < sections.size(); ++i) {
    keep_own_set(parts[i], sections[i].name, result.calibration);
  }
  result.calibration.tier = engine::Tier::measured;
  result.calibration.measured_on = device;
  return result;
}

}  // namespace tools

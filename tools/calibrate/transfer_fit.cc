#include "tools/calibrate/transfer_fit.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <type_traits>
#include <utility>

#include "engine/kernels/own_slot.h"
#include "tools/calibrate/call_op.h"
#include "tools/calibrate/predict.h"

namespace tools {
namespace {

using engine::ParameterSet;

// Samples of one section, one list a device.
using Section = std::vector<std::vector<Sample>>;

bool wanted(const std::string& name, const TransferOptions& options) {
  return options.sections.empty() ||
         std::ranges::any_of(options.sections,
                             [&](const std::string& start) { return name.starts_with(start); });
}

std::map<std::string, Section> sections_of(const std::vector<DeviceCalls>& devices,
                                           const TransferOptions& options) {
  std::map<std::string, Section> sections;
  engine::Calibration scratch;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    for (const MeasuredCall& measured : devices[d].calls) {
      Sample sample{measured.call.family, op_of(measured.call), &devices[d].device,
                    measured.seconds};
      const auto slot = engine::own_slot(scratch, sample.family, sample.op, devices[d].device);
      if (slot.facts == nullptr) continue;
      const std::string name = slot.section.substr(0, slot.section.rfind('/'));
      if (!wanted(name, options)) continue;
      Section& section = sections[name];
      section.resize(devices.size());
      section[d].push_back(std::move(sample));
    }
  }
  return sections;
}

bool in_chain(ParameterSet from, ParameterSet set) {
  for (ParameterSet step = from;; step = engine::wider_set(step)) {
    if (step == set) return true;
    if (step == ParameterSet::pooled || step == ParameterSet::none) return false;
  }
}

// Devices with samples whose calls a set speaks for, without the one that is left out.
std::vector<std::size_t> members_of(const Section& section, const std::vector<DeviceCalls>& devices,
                                    ParameterSet set, std::size_t left_out) {
  std::vector<std::size_t> members;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    if (d == left_out || section[d].empty()) continue;
    if (in_chain(engine::choose_set(devices[d].device), set)) members.push_back(d);
  }
  return members;
}

constexpr std::size_t kNobody = std::size_t(-1);

double mean_launch(const std::vector<DeviceCalls>& devices,
                   const std::vector<std::size_t>& members) {
  double sum = 0;
  for (const std::size_t d : members) sum += devices[d].device.launch_latency.value * 1e6;
  return sum / double(members.size());
}

double mean_link_latency(const std::vector<DeviceCalls>& devices,
                         const std::vector<std::size_t>& members) {
  double sum = 0;
  for (const std::size_t d : members) sum += devices[d].device.scale_up.latency.value * 1e6;
  return sum / double(members.size());
}

// Every member has the same weight, however many rows its table has.
std::vector<Sample> equal_shares(const Section& section, const std::vector<std::size_t>& members,
                                 std::size_t most) {
  std::vector<Sample> samples;
  const std::size_t share = std::max<std::size_t>(1, most / members.size());
  for (const std::size_t d : members) {
    const std::size_t count = std::min(share, section[d].size());
    for (std::size_t i = 0; i < count; ++i) {
      samples.push_back(section[d][i * section[d].size() / count]);
    }
  }
  return samples;
}

std::vector<Scored> scored_by(const engine::Calibration* calibration,
                              const std::vector<Sample>& samples, std::size_t most) {
  const Predictor predict(*samples.front().device, calibration);
  std::vector<Scored> scored;
  const std::size_t count = std::min(most, samples.size());
  for (std::size_t i = 0; i < count; ++i) {
    const Sample& sample = samples[i * samples.size() / count];
    const Prediction prediction = predict(sample.family, sample.op);
    scored.push_back({sample.seconds, prediction.seconds, prediction.lo, prediction.hi});
  }
  return scored;
}

struct Interval {
  double low = 1;
  double high = 1;
};

Interval interval_of(const std::vector<Scored>& scored) {
  std::vector<double> ratios;
  for (const Scored& row : scored) ratios.push_back(row.measured / row.predicted);
  return {quantile(ratios, 0.05), quantile(ratios, 0.95)};
}

// A calibration whose only set is the section's own one, fitted to the members.
engine::Calibration fitted_to(const std::string& name, const Section& section,
                              const std::vector<DeviceCalls>& devices,
                              const std::vector<std::size_t>& members,
                              const TransferOptions& options) {
  engine::Calibration calibration;
  const std::vector<Sample> samples = equal_shares(section, members, options.most_samples);
  const auto begin = [&](double query_rows) {
    engine::Calibration::sections(calibration, [&](const std::string& other, auto& sets, auto&&) {
      if (other != name) return;
      auto& own = sets[static_cast<std::size_t>(ParameterSet::own)];
      own.present = true;
      own.launch = mean_launch(devices, members);
      using Fit = std::remove_cvref_t<decltype(own.fit)>;
      own.fit = Fit{};
      if constexpr (std::is_same_v<Fit, engine::PrefillFit>) own.fit.tq = query_rows;
      if constexpr (std::is_same_v<Fit, engine::CollectiveFit>) {
        own.fit.latency = mean_link_latency(devices, members);
      }
    });
    return fit_section(
        calibration, name, ParameterSet::own, samples,
        {.start = Start::neutral, .most_samples = options.most_samples, .search = options.search});
  };
  const double wide = begin(128);
  if (name.find("prefill") != std::string::npos) {
    // Tile heights are a choice between two: take the better.
    const engine::Calibration first = calibration;
    if (begin(64) > wide) calibration = first;
  }
  // The widest of the members' own intervals: what the form leaves over, without a stranger's share.
  Interval widest;
  for (const std::size_t d : members) {
    const Interval own = interval_of(scored_by(&calibration, section[d], options.most_scored));
    widest = {std::min(widest.low, own.low), std::max(widest.high, own.high)};
  }
  engine::Calibration::sections(calibration, [&](const std::string& other, auto& sets, auto&&) {
    if (other != name) return;
    auto& own = sets[static_cast<std::size_t>(ParameterSet::own)];
    own.low = widest.low;
    own.high = widest.high;
  });
  return calibration;
}

// The narrowest set, in the order a device would look for one, that the other devices speak for.
std::pair<ParameterSet, std::vector<std::size_t>> set_without(
    const Section& section, const std::vector<DeviceCalls>& devices, std::size_t left_out) {
  ParameterSet set = engine::choose_set(devices[left_out].device);
  while (true) {
    auto members = members_of(section, devices, set, left_out);
    // One device is no class: what it has of its own would be taken for what the class has.
    if (members.size() > 1 || set == ParameterSet::pooled) return {set, std::move(members)};
    set = engine::wider_set(set);
  }
}

struct LeftOutResult {
  LeftOut row;
  Interval interval;
};

std::optional<LeftOutResult> leave_out(const std::string& name, const Section& section,
                                       const std::vector<DeviceCalls>& devices, std::size_t d,
                                       const TransferOptions& options) {
  if (section[d].size() < 20) return std::nullopt;  // too few to say anything about a device
  const auto [set, members] = set_without(section, devices, d);
  if (members.empty()) return std::nullopt;
  const auto calibration = fitted_to(name, section, devices, members, options);
  const auto scored = scored_by(&calibration, section[d], options.most_scored);
  return LeftOutResult{
      .row = {.section = name,
              .device = devices[d].device.name,
              .set = std::string(engine::name_of(set)),
              .roofline = error_summary(scored_by(nullptr, section[d], options.most_scored)),
              .errors = error_summary(scored)},
      .interval = interval_of(scored)};
}

// Copies the own set of `from` into `set` of `into`.
void keep_set(const engine::Calibration& from, const std::string& name, ParameterSet set,
              const Interval& interval, engine::Calibration& into) {
  engine::Calibration::sections(from, [&](const std::string& section, const auto& source, auto&&) {
    if (section != name) return;
    engine::Calibration::sections(into, [&](const std::string& other, auto& sets, auto&&) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(sets)>,
                                   std::remove_cvref_t<decltype(source)>>) {
        if (other != name) return;
        auto& kept = sets[static_cast<std::size_t>(set)];
        kept = source[static_cast<std::size_t>(ParameterSet::own)];
        kept.tier = engine::Tier::transfer;
        kept.low = interval.low;
        kept.high = interval.high;
      }
    });
  });
}

}  // namespace

std::vector<LeftOut> leave_one_out(const std::vector<DeviceCalls>& devices,
                                   const TransferOptions& options) {
  std::vector<LeftOut> rows;
  for (const auto& [name, section] : sections_of(devices, options)) {
    for (std::size_t d = 0; d < devices.size(); ++d) {
      if (auto result = leave_out(name, section, devices, d, options)) {
        rows.push_back(std::move(result->row));
      }
    }
  }
  return rows;
}

engine::Calibration fit_transfer(const std::vector<DeviceCalls>& devices,
                                 const TransferOptions& options) {
  engine::Calibration calibration;
  for (const auto& [name, section] : sections_of(devices, options)) {
    // What a device outside the fit may expect: the widest of the devices left out in turn.
    Interval outside{1e300, 0};
    for (std::size_t d = 0; d < devices.size(); ++d) {
      if (const auto result = leave_out(name, section, devices, d, options)) {
        outside.low = std::min(outside.low, result->interval.low);
        outside.high = std::max(outside.high, result->interval.high);
      }
    }
    for (std::size_t s = 0; s < engine::kParameterSets; ++s) {
      const auto set = static_cast<ParameterSet>(s);
      const auto members = members_of(section, devices, set, kNobody);
      if (members.empty() || set == ParameterSet::own || set == ParameterSet::none) continue;
      const auto fitted = fitted_to(name, section, devices, members, options);
      Interval interval = outside;
      if (members.size() == 1 || outside.high == 0) {
        interval = interval_of(scored_by(&fitted, section[members.front()], options.most_scored));
      }
      keep_set(fitted, name, set, interval, calibration);
    }
  }
  return calibration;
}

std::string left_out_text(const std::vector<LeftOut>& rows) {
  std::string text = fmt::format("{:<22} {:<16} {:<13} {:>9} {}\n", "section", "left out",
                                 "predicted by", "roofline", error_heading());
  for (const LeftOut& row : rows) {
    text += fmt::format("{:<22} {:<16} {:<13} {:>9.1f} {}\n", row.section, row.device, row.set,
                        100 * row.roofline.mean, error_text(row.errors));
  }
  return text;
}

}  // namespace tools

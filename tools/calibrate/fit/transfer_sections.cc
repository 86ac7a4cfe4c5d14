#include "tools/calibrate/fit/transfer_sections.h"

#include <algorithm>
#include <utility>

#include "engine/kernels/own_slot.h"
#include "tools/calibrate/tables/predict.h"
#include "tools/calibrate/tables/quantile.h"
#include "tools/calibrate/tables/table_families.h"

namespace tools {
namespace {

using engine::ParameterSet;

bool is_wanted(const std::string& name, const std::vector<std::string>& wanted) {
  return wanted.empty() || std::ranges::any_of(wanted, [&](const std::string& start) {
           return name.starts_with(start);
         });
}

bool in_chain(ParameterSet from, ParameterSet set) {
  for (ParameterSet step = from;; step = engine::wider_set(step)) {
    if (step == set) return true;
    if (step == ParameterSet::pooled || step == ParameterSet::none) return false;
  }
}

// Measured over predicted, of as many calls of each device.
std::vector<double> ratios_of(const std::vector<std::vector<Scored>>& devices) {
  std::size_t fewest = std::size_t(-1);
  for (const auto& scored : devices) fewest = std::min(fewest, scored.size());
  std::vector<double> ratios;
  for (const auto& scored : devices) {
    for (std::size_t i = 0; i < fewest; ++i) {
      const Scored& row = scored[i * scored.size() / fewest];
      ratios.push_back(row.measured / row.predicted);
    }
  }
  return ratios;
}

Interval nine_in_ten(std::vector<double> ratios) {
  if (ratios.empty()) return {};
  return {std::min(1.0, quantile(ratios, 0.05)), std::max(1.0, quantile(ratios, 0.95))};
}

}  // namespace

std::map<std::string, Section> sections_of(const std::vector<DeviceCalls>& devices,
                                           const std::vector<std::string>& wanted) {
  std::map<std::string, Section> sections;
  engine::Calibration scratch;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    for (const MeasuredCall& measured : devices[d].calls) {
      Sample sample{measured.call.family, op_of(measured.call), &devices[d].device,
                    measured.seconds};
      const auto slot = engine::own_slot(scratch, sample.family, sample.op, devices[d].device);
      if (slot.facts == nullptr) continue;
      const std::string name = slot.section.substr(0, slot.section.rfind('/'));
      if (!is_wanted(name, wanted)) continue;
      Section& section = sections[name];
      section.resize(devices.size());
      section[d].push_back(std::move(sample));
    }
  }
  return sections;
}

std::vector<std::size_t> members_of(const Section& section, const std::vector<DeviceCalls>& devices,
                                    ParameterSet set, const std::vector<std::size_t>& left_out) {
  std::vector<std::size_t> members;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    if (section[d].empty() || std::ranges::find(left_out, d) != left_out.end()) continue;
    if (in_chain(engine::choose_set(devices[d].device), set)) members.push_back(d);
  }
  return members;
}

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

Interval interval_of(const std::vector<std::vector<Scored>>& devices) {
  return nine_in_ten(ratios_of(devices));
}

Interval interval_of_strangers(const std::vector<std::vector<Scored>>& devices) {
  std::vector<double> ratios = ratios_of(devices);
  const std::size_t count = ratios.size();
  for (std::size_t i = 0; i < count; ++i) ratios.push_back(1 / ratios[i]);
  return nine_in_ten(ratios);
}

}  // namespace tools

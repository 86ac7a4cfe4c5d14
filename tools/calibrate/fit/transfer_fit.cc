#include "tools/calibrate/fit/transfer_fit.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "engine/kernels/kernel_time.h"
#include "tools/calibrate/fit/correction_trees.h"
#include "tools/calibrate/fit/in_parallel.h"
#include "tools/calibrate/fit/shared_set.h"

namespace tools {
namespace {

using engine::ParameterSet;

// Relatives differ from the device a generation was fitted on by a little more than its own rows from
// the fit: an H200 predicted from an H100's table needs logarithms of the interval so much wider.
constexpr double kRelative = 1.25;

constexpr std::size_t kLeastScored = 20;  // fewer calls say nothing about a device

// Products in 16 bits say what a library's kernels are like. One scale for a whole tensor is the same library's work; scales of blocks
// are other kernels'.
constexpr std::string_view kWide = "gemm/bf16";
const Section* wide_section(const std::map<std::string, Section>& sections,
                            const std::string& name) {
  const auto found = sections.find(std::string(kWide));
  return name == "gemm/fp8" && found != sections.end() ? &found->second : nullptr;
}

struct Turn {
  LeftOut row;
  std::vector<Scored> scored;
};

// One section with the devices it is about.
class SectionFit {
 public:
  // `wide`: calls of the same family in 16 bits; nullptr: none, or these are.
  SectionFit(std::string name, const Section& section, const Section* wide,
             const std::vector<DeviceCalls>& devices, const TransferOptions& options)
      : name_(std::move(name)),
        section_(section),
        wide_(wide),
        devices_(devices),
        options_(options) {}

  // Every device's turn to be left out.
  std::vector<Turn> turns() const {
    std::vector<Turn> turns;
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      if (section_[d].size() < kLeastScored) continue;
      const auto relatives = members_of(section_, devices_, generation(d), {});
      if (is_generation(generation(d)) && relatives.size() > 1) {
        if (auto turn = turn_of(d, {d}, Without::device)) turns.push_back(std::move(*turn));
      }
      if (auto turn = turn_of(d, relatives_of(d), Without::generation)) {
        turns.push_back(std::move(*turn));
      }
    }
    for (Turn& turn : turns) set_interval(turn, turns);
    return turns;
  }

  // The sets that are worth keeping, into `calibration`.
  void keep_sets(const std::vector<Turn>& turns, engine::Calibration& calibration) const {
    const Interval outside = interval_of_strangers(strangers(turns, ""));
    keep_generations(calibration);
    for (const ParameterSet set :
         {ParameterSet::synchronous, ParameterSet::asynchronous, ParameterSet::pooled}) {
      const auto members = members_of(section_, devices_, set, {});
      // One generation is no class: what is its own, such as the floors of the engines that it was measured with, would be taken for
      // what the class has. Such a class is spoken for by all devices together.
      if (members.empty() || (set != ParameterSet::pooled && generations(members) < 2)) continue;
      const auto fitted = fitted_to(set, several_models(members));
      const bool known = outside.high > 1;
      keep_shared_set(fitted, name_, set, known ? outside : widened(own_interval(fitted, members)),
                      calibration);
    }
  }

  // Generations with enough calls to be worth parameters.
  void keep_generations(engine::Calibration& calibration) const {
    for (const ParameterSet set : kGenerations) {
      const auto members = members_of(section_, devices_, set, {});
      if (too_few(members)) continue;
      auto fitted = fitted_to(set, several_models(members));
      see_only(fitted, name_, equal_shares(section_, members, options_.most_samples));
      keep_shared_set(fitted, name_, set, widened(own_interval(fitted, members)), calibration);
    }
  }

  // One engine's generations, with trees for the rules that its kernels follow, which no form of all
  // engines can hold. Its forms come from `kernels`, the same section without what says nothing of a
  // kernel (none: nothing is left).
  EngineFit engine(const SectionFit* kernels) const {
    EngineFit fit;
    for (const ParameterSet set : kGenerations) {
      const auto members = members_of(section_, devices_, set, {});
      if (too_few(members)) continue;
      auto fitted = fitted_to(set, members);
      if (kernels == this) keep_form(fitted, members, set, fit.forms);
      if (set == ParameterSet::ampere) keep_class(fitted, members, fit.rows);
      const std::size_t swept = members.front();
      auto unseen = add_trees(fitted, section_[swept]);
      const Interval interval = widened(interval_of({unseen}));
      for (Scored& row : unseen) {
        row.lo = row.predicted * interval.low;
        row.hi = row.predicted * interval.high;
      }
      keep_shared_set(fitted, name_, set, interval, fit.rows);
      fit.unseen.push_back({name_, devices_[swept].device.name, error_summary(unseen)});
    }
    if (kernels != nullptr && kernels != this) fit.forms = kernels->engine_forms();
    return fit;
  }

  bool same_times(const SectionFit& other) const {
    return std::ranges::equal(section_, other.section_, [](const auto& mine, const auto& others) {
      return std::ranges::equal(mine, others, {}, &Sample::seconds, &Sample::seconds);
    });
  }

  const std::string& name() const { return name_; }

 private:
  engine::Calibration engine_forms() const {
    engine::Calibration forms;
    for (const ParameterSet set : kGenerations) {
      const auto members = members_of(section_, devices_, set, {});
      if (!too_few(members)) keep_form(fitted_to(set, members), members, set, forms);
    }
    return forms;
  }

  // 16-bit products are one library's, of which the shared set knows more devices: only rows of tables
  // are told apart.
  bool is_shared() const { return name_ == kWide; }

  void keep_form(const engine::Calibration& fitted, const std::vector<std::size_t>& members,
                 ParameterSet set, engine::Calibration& forms) const {
    if (is_shared() || of_one_model(members)) return;
    keep_shared_set(fitted, name_, set, widened(own_interval(fitted, members)), forms);
    if (set == ParameterSet::ampere) keep_class(fitted, members, forms);
  }

  // The oldest generation's form is the nearest an engine has for the class.
  void keep_class(const engine::Calibration& fitted, const std::vector<std::size_t>& members,
                  engine::Calibration& into) const {
    if (is_shared()) return;
    keep_shared_set(fitted, name_, ParameterSet::synchronous,
                    widened(own_interval(fitted, members)), into);
  }

  // All experts that were called are those of one model.
  bool of_one_model(const std::vector<std::size_t>& members) const {
    const engine::Moe* first = nullptr;
    for (const std::size_t d : members) {
      for (const Sample& sample : section_[d]) {
        const auto* op = std::get_if<engine::Moe>(&sample.op);
        if (op == nullptr) return false;
        if (first == nullptr) first = op;
        if (op->hidden != first->hidden || op->experts != first->experts) return false;
      }
    }
    return first != nullptr;
  }

  // Calls of one model cannot tell arithmetic from traffic: what they say of another's experts is arbitrary. Then all devices speak.
  std::vector<std::size_t> several_models(const std::vector<std::size_t>& members) const {
    return of_one_model(members) ? members_of(section_, devices_, ParameterSet::pooled, {})
                                 : members;
  }

  bool too_few(const std::vector<std::size_t>& members) const {
    return std::ranges::all_of(members,
                               [&](std::size_t d) { return section_[d].size() < kLeastScored; });
  }

  ParameterSet generation(std::size_t d) const { return engine::choose_set(devices_[d].device); }

  std::vector<std::size_t> relatives_of(std::size_t d) const {
    std::vector<std::size_t> relatives;
    for (std::size_t other = 0; other < devices_.size(); ++other) {
      const bool related = is_generation(generation(d)) && generation(other) == generation(d);
      if (other == d || related) relatives.push_back(other);
    }
    return relatives;
  }

  std::size_t generations(const std::vector<std::size_t>& members) const {
    std::set<ParameterSet> different;
    for (const std::size_t d : members) different.insert(generation(d));
    return different.size();
  }

  engine::Calibration fitted_to(ParameterSet set, const std::vector<std::size_t>& members) const {
    return fit_shared_set(
        shared_calls(name_, section_, set, members),
        wide_ == nullptr ? SharedCalls{} : shared_calls(std::string(kWide), *wide_, set, members),
        options_.search);
  }

  SharedCalls shared_calls(const std::string& name, const Section& section, ParameterSet set,
                           std::vector<std::size_t> members) const {
    std::erase_if(members, [&](std::size_t d) { return section[d].empty(); });
    if (members.empty()) return {};
    SharedCalls calls{.section = name,
                      .set = set,
                      .samples = equal_shares(section, members, options_.most_samples)};
    for (const std::size_t d : members) calls.devices.push_back(&devices_[d].device);
    return calls;
  }

  // The narrowest set, in the order a device would look for one, that the other devices speak for.
  std::pair<ParameterSet, std::vector<std::size_t>> set_without(
      std::size_t d, const std::vector<std::size_t>& left_out) const {
    ParameterSet set = generation(d);
    while (true) {
      auto members = members_of(section_, devices_, set, left_out);
      std::erase_if(members, [&](std::size_t m) {
        return is_engines(section_[d]) && !is_engines(section_[m]);
      });
      // One generation is no class: what it has of its own would be taken for what the class has.
      // It is the best there is for a device that has no generation in the tables at all.
      const bool enough = set == generation(d) ? !members.empty() : generations(members) > 1;
      if (enough || set == ParameterSet::pooled) return {set, std::move(members)};
      set = engine::wider_set(set);
    }
  }

  std::optional<Turn> turn_of(std::size_t d, const std::vector<std::size_t>& left_out,
                              Without without) const {
    const auto [set, members] = set_without(d, left_out);
    if (members.empty()) return std::nullopt;
    const auto calibration = fitted_to(set, members);
    Turn turn;
    turn.scored = scored_by(&calibration, section_[d], options_.most_scored);
    turn.row = {.section = name_,
                .device = devices_[d].device.name,
                .without = without,
                .set = std::string(engine::name_of(set)),
                .roofline = error_summary(scored_by(nullptr, section_[d], options_.most_scored))};
    const Interval own = widened(own_interval(calibration, members));
    for (Scored& row : turn.scored) {
      row.lo = row.predicted * own.low;
      row.hi = row.predicted * own.high;
    }
    return turn;
  }

  Interval own_interval(const engine::Calibration& calibration,
                        const std::vector<std::size_t>& members) const {
    std::vector<std::vector<Scored>> scored;
    for (const std::size_t d : members) {
      scored.push_back(scored_by(&calibration, section_[d], options_.most_scored));
    }
    return interval_of(scored);
  }

  static Interval widened(const Interval& interval) {
    return {std::pow(interval.low, kRelative), std::pow(interval.high, kRelative)};
  }

  // What devices without any relative in the fit saw, but for `except`.
  static std::vector<std::vector<Scored>> strangers(const std::vector<Turn>& turns,
                                                    const std::string& except) {
    std::vector<std::vector<Scored>> scored;
    for (const Turn& turn : turns) {
      if (turn.row.without != Without::generation || turn.row.device == except) continue;
      scored.push_back(turn.scored);
    }
    return scored;
  }

  // A stranger's interval is what the other strangers saw; a relative's is that of its generation.
  static void set_interval(Turn& turn, const std::vector<Turn>& turns) {
    const auto others = strangers(turns, turn.row.device);
    if (turn.row.without == Without::generation && !others.empty()) {
      const Interval interval = interval_of_strangers(others);
      for (Scored& row : turn.scored) {
        row.lo = row.predicted * interval.low;
        row.hi = row.predicted * interval.high;
      }
    }
    turn.row.errors = error_summary(turn.scored);
  }

  std::string name_;
  const Section& section_;
  const Section* wide_;
  const std::vector<DeviceCalls>& devices_;
  const TransferOptions& options_;
};

std::vector<SectionFit> section_fits(const std::map<std::string, Section>& sections,
                                     const std::vector<DeviceCalls>& devices,
                                     const TransferOptions& options) {
  std::vector<SectionFit> fits;
  for (const auto& [name, section] : sections) {
    fits.emplace_back(name, section, wide_section(sections, name), devices, options);
  }
  return fits;
}

engine::Calibration joined(const std::vector<engine::Calibration>& parts) {
  engine::Calibration all;
  for (const engine::Calibration& part : parts) all = engine::completed_by(std::move(all), part);
  return all;
}

std::vector<LeftOut> rows_of(const std::vector<std::vector<Turn>>& turns) {
  std::vector<LeftOut> rows;
  for (const auto& section : turns) {
    for (const Turn& turn : section) rows.push_back(turn.row);
  }
  return rows;
}

}  // namespace

std::vector<LeftOut> leave_one_out(const std::vector<DeviceCalls>& devices,
                                   const TransferOptions& options) {
  const auto sections = sections_of(devices, options.sections);
  const auto fits = section_fits(sections, devices, options);
  std::vector<std::vector<Turn>> turns(fits.size());
  in_parallel(fits.size(), [&](std::size_t i) { turns[i] = fits[i].turns(); });
  return rows_of(turns);
}

TransferFit fit_transfer(const std::vector<DeviceCalls>& devices, const TransferOptions& options) {
  const auto sections = sections_of(devices, options.sections);
  const auto fits = section_fits(sections, devices, options);
  std::vector<std::vector<Turn>> turns(fits.size());
  std::vector<engine::Calibration> parts(fits.size());
  in_parallel(fits.size(), [&](std::size_t i) {
    turns[i] = fits[i].turns();
    fits[i].keep_sets(turns[i], parts[i]);
  });
  return {.calibration = joined(parts), .left_out = rows_of(turns)};
}

EngineFit fit_engine(const EngineCalls& calls, const TransferOptions& options) {
  const auto sections = sections_of(calls.rows, options.sections);
  const auto fits = section_fits(sections, calls.rows, options);
  const auto kernel_sections = sections_of(calls.kernels, options.sections);
  const auto kernels = section_fits(kernel_sections, calls.kernels, options);
  std::vector<EngineFit> parts(fits.size());
  in_parallel(fits.size(), [&](std::size_t i) {
    const auto own = std::ranges::find(kernels, fits[i].name(), &SectionFit::name);
    const SectionFit* left = own == kernels.end() ? nullptr : &*own;
    parts[i] = fits[i].engine(left != nullptr && left->same_times(fits[i]) ? &fits[i] : left);
  });
  EngineFit all;
  for (const EngineFit& part : parts) {
    all.forms = engine::completed_by(std::move(all.forms), part.forms);
    all.rows = engine::completed_by(std::move(all.rows), part.rows);
    all.unseen.insert(all.unseen.end(), part.unseen.begin(), part.unseen.end());
  }
  return all;
}

std::string left_out_text(const std::vector<LeftOut>& rows) {
  std::string text = fmt::format("{:<25} {:<16} {:<11} {:<13} {:>9} {}\n", "section", "left out",
                                 "with its", "predicted by", "roofline", error_heading());
  for (const LeftOut& row : rows) {
    text += fmt::format("{:<25} {:<16} {:<11} {:<13} {:>9.1f} {}\n", row.section, row.device,
                        row.without == Without::generation ? "generation" : "", row.set,
                        100 * row.roofline.mean, error_text(row.errors));
  }
  return text;
}

std::string unseen_text(const std::vector<UnseenShapes>& rows) {
  std::string text =
      fmt::format("{:<25} {:<16} {}\n", "section", "unseen shapes on", error_heading());
  for (const UnseenShapes& row : rows) {
    text += fmt::format("{:<25} {:<16} {}\n", row.section, row.device, error_text(row.errors));
  }
  return text;
}

}  // namespace tools

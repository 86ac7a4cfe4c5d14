#include "tools/cli/outcome_summary.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "engine/evaluate.h"
#include "engine/leaves/leaves.h"
#include "sweep/language/suggest.h"
#include "sweep/space/space_parts.h"
#include "tools/terminal/number_text.h"

namespace tools {
namespace {

std::string line(std::string_view what, std::uint64_t count, std::string_view why = "") {
  return fmt::format("  {:<14} {:>12}{}{}\n", what, grouped(count), why.empty() ? "" : "  ", why);
}

std::uint64_t count_of(const sweep::Tally& tally, engine::Status status) {
  return tally.by_status[static_cast<std::size_t>(status)];
}

// "memory 12, links 3", the most frequent first.
std::string by_class(const sweep::Tally& tally) {
  constexpr auto names = enum_names(engine::ReasonClass{});
  std::vector<std::size_t> classes;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (tally.by_class[i] > 0) classes.push_back(i);
  }
  std::ranges::stable_sort(
      classes, [&](std::size_t a, std::size_t b) { return tally.by_class[a] > tally.by_class[b]; });
  std::string text;
  for (const std::size_t i : classes) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", names[i], grouped(tally.by_class[i]));
  }
  return text;
}

}  // namespace

std::string summary_text(const sweep::Tally& tally, const sweep::Space& space) {
  std::string text;
  std::uint64_t failing = 0;
  for (std::size_t i = 0; i < tally.by_status.size(); ++i) {
    const auto status = static_cast<engine::Status>(i);
    if (tally.by_status[i] == 0) continue;
    text += line(name_of(status), tally.by_status[i]);
    if (status != engine::Status::ok) failing += tally.by_status[i];
  }
  if (failing > 0) text += line("reasons", failing, by_class(tally));
  if (tally.reused > 0) text += line("(reused)", tally.reused);
  for (std::size_t i = 0; i < tally.rejected.size(); ++i) {
    if (tally.rejected[i] > 0) text += line("rejected", tally.rejected[i], space.requirements()[i]);
  }
  if (tally.not_applicable > 0) {
    text += line("left out", tally.not_applicable, "axes whose 'when' is false");
  }
  return text;
}

bool nothing_works(const sweep::Tally& tally) { return count_of(tally, engine::Status::ok) == 0; }

std::string nothing_works_text(const sweep::Tally& tally, const sweep::SweepSpec& spec) {
  if (tally.rows() == 0) {
    return "there is no point: 'require' or 'when' rule out every position looked at\n";
  }
  const std::string all =
      fmt::format("not one of {} works ({})", counted(tally.rows(), "point"), by_class(tally));
  sweep::PointBuilder builder(spec.space);
  sweep::Point point;
  // The first point is soon found: most positions are points.
  constexpr std::uint64_t most = 100'000;
  for (std::uint64_t i = 0; i < std::min(most, spec.space.size()); ++i) {
    if (builder.build(i, point) != sweep::Admission::admitted) continue;
    const engine::Outcome outcome = engine::evaluate(point.scenario, *spec.resources);
    if (outcome.status == engine::Status::ok) break;
    return fmt::format("{}; point {}, for one: {}\n", all, i, outcome.reason);
  }
  return all + "\n";
}

namespace {

// Devices of a sweep for which `is_missing` holds of a number in their file; none where an axis varies that number by itself.
std::vector<std::string> devices_without(const sweep::Space& space, const std::string& path,
                                         bool (*is_missing)(double)) {
  const engine::LeafTable& table = engine::leaf_table();
  const int number = table.find_leaf(path);
  const int name = table.find_leaf("device.name");
  const auto edit_of = [](const sweep::Axis& axis, const sweep::Setting& setting, int leaf) {
    for (std::size_t i = setting.first_edit; i < setting.last_edit; ++i) {
      if (axis.edits[i].leaf == leaf) return &axis.edits[i].value;
    }
    return static_cast<const engine::LeafValue*>(nullptr);
  };
  const auto as_number = [](const engine::LeafValue& value) {
    const auto* whole = std::get_if<std::int64_t>(&value);
    return whole != nullptr ? double(*whole) : std::get<double>(value);
  };
  std::vector<std::string> missing;
  const auto add = [&missing](const std::string& device) {
    if (std::ranges::find(missing, device) == missing.end()) missing.push_back(device);
  };
  const double at_first = engine::leaf_as_double(space.base(), table.leaves[std::size_t(number)]);
  bool varied = false;
  for (const sweep::Axis& axis : space.parts().axes) {
    // Numbers of its own, whatever the device.
    if (axis.path == path || axis.interval.leaf == number) return {};
    for (const sweep::Setting& setting : axis.settings) {
      const engine::LeafValue* device = edit_of(axis, setting, name);
      if (device == nullptr) continue;
      varied = true;
      // What a device has like the base is not among the edits.
      const engine::LeafValue* value = edit_of(axis, setting, number);
      if (is_missing(value != nullptr ? as_number(*value) : at_first)) {
        add(std::get<std::string>(*device));
      }
    }
  }
  if (!varied && is_missing(at_first)) add(space.base().device.name);
  return missing;
}

}  // namespace

std::vector<std::string> device_notes(const sweep::Space& space) {
  std::vector<std::string> notes;
  const auto rentless =
      devices_without(space, "device.rent", [](double rent) { return rent <= 0; });
  if (!rentless.empty()) {
    notes.push_back(
        fmt::format("no prices for {}: no rent is stated; 'device.rent: 2.50 USD/h' states one",
                    sweep::listing(rentless, 5)));
  }
  auto lone =
      devices_without(space, "device.multiprocessors", [](double count) { return count < 1; });
  // One large grid of multipliers is enough.
  const auto gridless =
      devices_without(space, "device.array.rows", [](double rows) { return rows <= 0; });
  std::erase_if(
      lone, [&](const auto& name) { return std::ranges::find(gridless, name) == gridless.end(); });
  if (!lone.empty()) {
    notes.push_back(fmt::format(
        "{}: no multiprocessors are stated, so kernels are rooflines, which are lower "
        "bounds of their times; 'device.multiprocessors: 100' states how many there are",
        sweep::listing(lone, 5)));
  }
  return notes;
}

}  // namespace tools

#include "sweep/language/notes_on_specs.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string_view>

#include "engine/leaves/leaves.h"
#include "sweep/language/counting.h"

namespace sweep {
namespace {

std::span<const Edit> edits_of(const Axis& axis, const Setting& setting) {
  return std::span(axis.edits).subspan(setting.first_edit, setting.last_edit - setting.first_edit);
}

// What of a value counts in some point, and the rest.
struct Parted {
  LeafValues counted, idle;
};
// `counts` has what was asked before: an axis may have thousands of values.
Parted parted(std::span<const Edit> edits, const Counting& counting, std::map<int, bool>& counts) {
  Parted parts;
  for (const Edit& edit : edits) {
    if (!engine::leaf_at(edit.leaf).range.in_key) continue;
    const auto [known, fresh] = counts.emplace(edit.leaf, false);
    if (fresh) known->second = !counting.why_inert(edit.leaf);
    (known->second ? parts.counted : parts.idle).emplace_back(edit.leaf, edit.value);
  }
  return parts;
}

// A leaf that both specs state, and not alike; -1: there is none, and they are two names of one spec.
int first_difference(const LeafValues& one, std::span<const Edit> other) {
  for (const auto& [leaf, value] : one) {
    const auto same = std::ranges::find(other, leaf, &Edit::leaf);
    if (same == other.end() || same->value != value) return leaf;
  }
  return -1;
}

void note_equal_specs(const Axis& axis, const std::vector<std::string>& labels,
                      const engine::Location& place, const Counting& counting,
                      std::vector<std::string>& notes) {
  std::map<LeafValues, const Setting*> seen;  // by what counts
  std::map<int, bool> counts;
  for (const Setting& setting : axis.settings) {
    if (setting.when != kNone) continue;
    Parted parts = parted(edits_of(axis, setting), counting, counts);
    const auto [first, fresh] = seen.emplace(std::move(parts.counted), &setting);
    if (fresh) continue;
    const int differs = first_difference(parts.idle, edits_of(axis, *first->second));
    if (differs < 0) continue;
    notes.push_back(located(place, fmt::format("'{}' and '{}' are the same {} here: {}",
                                               labels[std::size_t(first->second->label)],
                                               labels[std::size_t(setting.label)], axis.path,
                                               said_idle(engine::leaf_at(differs).path,
                                                         *counting.why_inert(differs)))));
  }
}

// The section of the library whose name a leaf is, or null.
const engine::Section* named_by(int leaf) {
  const std::string& path = engine::leaf_at(leaf).path;
  const std::size_t dot = path.rfind('.');
  if (dot == std::string::npos || path.substr(dot + 1) != "name") return nullptr;
  const int section = engine::leaf_table().find_section(path.substr(0, dot));
  if (section < 0) return nullptr;
  const engine::Section& found = engine::leaf_table().sections[std::size_t(section)];
  return found.library.empty() ? nullptr : &found;
}

}  // namespace

std::vector<std::string> notes_on_equal_specs(const SpaceParts& parts,
                                              const std::vector<engine::Location>& places) {
  const Possibilities possibilities(parts);
  const Counting counting(possibilities);
  std::vector<std::string> notes;
  for (std::size_t i = 0; i < parts.axes.size(); ++i) {
    const Axis& axis = parts.axes[i];
    const bool whole =
        axis.label_column != kNone && engine::leaf_table().find_section(axis.path) >= 0;
    if (!whole || axis.role != kNone) continue;
    const auto& labels = parts.label_columns[std::size_t(axis.label_column)].values;
    note_equal_specs(axis, labels, places[i], counting, notes);
  }
  return notes;
}

std::vector<std::string> notes_on_named_specs(const SpaceParts& parts,
                                              const std::vector<engine::Location>& places) {
  std::vector<std::string> notes;
  std::set<std::string> said;
  for (std::size_t i = 0; i < parts.axes.size(); ++i) {
    const Axis& axis = parts.axes[i];
    for (const Setting& setting : axis.settings) {
      const std::span<const Edit> edits = edits_of(axis, setting);
      for (const Edit& edit : edits) {
        const engine::Section* spec = named_by(edit.leaf);
        if (spec == nullptr || edits.size() >= spec->last_leaf - spec->first_leaf) continue;
        const std::string note = located(
            places[i],
            fmt::format("'{}' is a name and makes no new {}: what is not stated beside it stays as "
                        "it was (of a device its links, rent, powers and calibration too); 'from: "
                        "{{}}' starts from nothing",
                        std::get<std::string>(edit.value), spec->path));
        if (said.insert(note).second) notes.push_back(note);
      }
    }
  }
  return notes;
}

}  // namespace sweep

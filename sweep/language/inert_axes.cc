#include "sweep/language/inert_axes.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "engine/leaves/leaf_use.h"
#include "engine/leaves/leaves.h"
#include "sweep/language/counting.h"
#include "sweep/language/possibilities.h"

namespace sweep {
namespace {

using engine::LeafUse;

const engine::LeafTable& table() { return engine::leaf_table(); }

std::vector<int> leaves_of(const Axis& axis) {
  std::vector<int> leaves;
  for (const Edit& edit : axis.edits) {
    if (std::ranges::find(leaves, edit.leaf) == leaves.end()) leaves.push_back(edit.leaf);
  }
  if (axis.interval.leaf != kNone) leaves.push_back(axis.interval.leaf);
  return leaves;
}

// Why no leaf of an axis counts; nothing: one does. A whole device or model has many leaves, and some never count: the reason is that
// of most.
Reason why_all_inert(const std::vector<int>& leaves, const Counting& counting) {
  std::map<std::string, int> leaves_by_reason;
  Reason commonest;
  int most = 0;
  for (const int leaf : leaves) {
    const Reason reason = counting.why_inert(leaf);
    if (!reason) return std::nullopt;
    const int count = ++leaves_by_reason[reason->where()];
    if (count <= most) continue;
    commonest = reason;
    most = count;
  }
  return commonest;
}

// Why nothing counts of a spec that is named as a part of another, such as a link of a device; nothing: some of it does, or it is no spec.
Reason why_idle_section(const std::string& path, const Counting& counting) {
  const int number = table().find_section(path);
  if (number < 0) return std::nullopt;
  const engine::Section& section = table().sections[std::size_t(number)];
  if (engine::of_role(engine::leaf_at(int(section.first_leaf)))) return std::nullopt;
  std::vector<int> leaves;
  for (std::size_t leaf = section.first_leaf; leaf < section.last_leaf; ++leaf) {
    if (engine::leaf_at(int(leaf)).range.in_key) leaves.push_back(int(leaf));
  }
  return why_all_inert(leaves, counting);
}

// What is wrong with a value that is another one in every point; nothing, where it is itself in some.
std::string another_value(int leaf, const engine::LeafValue& value, const Counting& counting) {
  const std::optional<engine::ValueUse> use = counting.why_another(leaf, value);
  if (!use) return "";
  return fmt::format("'{}: {}' is {} here: it differs only where {}", engine::leaf_at(leaf).path,
                     use->value, use->otherwise, use->unless.where());
}

void check_values(const Axis& axis, const engine::Location& place, const Counting& counting,
                  Reading& reading) {
  for (const Edit& edit : axis.edits) {
    const std::string wrong = another_value(edit.leaf, edit.value, counting);
    if (!wrong.empty()) reading.mistake(place, wrong, "remove it, or change what it depends on");
  }
}

// What plays the part of a field in the other tasks, for a hint.
struct Counterparts {
  std::string_view step, request, serve;
};
constexpr Counterparts kCounterparts[] = {
    {"step.batch", "request.batch", "serving.max_num_seqs"},
    {"step.prompt", "request.prompt", "load.lengths.prompt"},
    {"step.context", "request.output", "load.lengths.output"},
    {"step.cached", "request.cached", "load.shared_prefix"},
    {"step.batch", "request.batch", "load.rate"},
    {"step.batch", "request.batch", "load.clients"},
};

std::string counterpart_hint(std::string_view path, const PossibleValues& tasks) {
  const auto other_task = [&](double task) { return task != tasks.values.front(); };
  if (tasks.values.empty() || tasks.any(other_task)) return "";
  const auto task = engine::Task(std::uint8_t(tasks.values.front()));
  for (const Counterparts& row : kCounterparts) {
    if (path != row.step && path != row.request && path != row.serve) continue;
    const std::string_view other = task == engine::Task::step      ? row.step
                                   : task == engine::Task::request ? row.request
                                                                   : row.serve;
    if (other == path) continue;
    return "under task " + std::string(name_of(task)) + " that is '" + std::string(other) +
           "'; or remove the axis";
  }
  return "";
}

// Axes whose every value is a position of its own; members of a zip may repeat.
std::vector<int> crossed_axes(const SpaceNode& node) {
  if (node.kind == SpaceNode::Kind::values) return {node.axis};
  std::vector<int> axes;
  const auto add = [&axes](const SpaceNode& child) {
    const std::vector<int> more = crossed_axes(child);
    axes.insert(axes.end(), more.begin(), more.end());
  };
  if (node.kind == SpaceNode::Kind::product) std::ranges::for_each(node.children, add);
  for (const Branch& branch : node.branches) add(branch.node);
  return axes;
}

// Leaves that an axis sets at every position.
std::vector<int> leaves_always_set(const Axis& axis) {
  std::vector<int> leaves = leaves_of(axis);
  std::erase_if(leaves, [&axis](int leaf) {
    const auto times = std::ranges::count(axis.edits, leaf, &Edit::leaf);
    return leaf != axis.interval.leaf && std::size_t(times) < axis.settings.size();
  });
  return leaves;
}

// Axes over narrower paths, and what of `axis` they set in every point.
struct Narrower {
  std::vector<int> leaves;
  std::string paths;
};
Narrower narrower_axes(const SpaceParts& parts, const Axis& axis,
                       const Possibilities& possibilities) {
  Narrower narrower;
  for (std::size_t i = 0; i < parts.axes.size(); ++i) {
    const Axis& other = parts.axes[i];
    if (!other.path.starts_with(axis.path + ".") || !possibilities.always(i)) continue;
    const std::vector<int> leaves = leaves_always_set(other);
    narrower.leaves.insert(narrower.leaves.end(), leaves.begin(), leaves.end());
    narrower.paths += (narrower.paths.empty() ? "'" : ", '") + other.path + "'";
  }
  return narrower;
}

// What a value of an axis sets, but for `shadowed` leaves.
LeafValues values_beside(const Axis& axis, const Setting& setting,
                         const std::vector<int>& shadowed) {
  LeafValues values;
  for (std::uint32_t i = setting.first_edit; i < setting.last_edit; ++i) {
    const Edit& edit = axis.edits[i];
    if (std::ranges::find(shadowed, edit.leaf) == shadowed.end()) {
      values.emplace_back(edit.leaf, edit.value);
    }
  }
  return values;
}

}  // namespace

void check_shadowed_values(const SpaceParts& parts, const std::vector<engine::Location>& places,
                           Reading& reading) {
  const Possibilities possibilities(parts);
  for (const int number : crossed_axes(parts.root)) {
    const Axis& axis = parts.axes[std::size_t(number)];
    if (!axis.holds_narrower) continue;
    const Narrower narrower = narrower_axes(parts, axis, possibilities);
    const auto& labels = parts.label_columns[std::size_t(axis.label_column)].values;
    std::map<LeafValues, const Setting*> seen;
    for (const Setting& setting : axis.settings) {
      if (setting.when != kNone) continue;
      const auto [first, fresh] =
          seen.emplace(values_beside(axis, setting, narrower.leaves), &setting);
      // Two names may stand for the same device or model today.
      if (fresh || values_beside(axis, setting, {}) == values_beside(axis, *first->second, {})) {
        continue;
      }
      reading.mistake(places[std::size_t(number)],
                      axis.path + ": '" + labels[std::size_t(setting.label)] + "' is '" +
                          labels[std::size_t(first->second->label)] + "' again: " + narrower.paths +
                          " sets what they differ in",
                      "every point would be computed twice; remove one of the axes");
    }
  }
}

void check_lost_fields(const SpaceParts& parts, const std::vector<StatedField>& base,
                       Reading& reading) {
  const Possibilities possibilities(parts);
  const auto stated = [&base](const std::string& path) {
    return std::ranges::find(base, path, &StatedField::path) != base.end();
  };
  const auto has_axis = [&parts](const std::string& path) {
    return std::ranges::find(parts.axes, path, &Axis::path) != parts.axes.end();
  };
  for (std::size_t i = 0; i < parts.axes.size(); ++i) {
    const Axis& axis = parts.axes[i];
    const int number = table().find_section(axis.path);
    if (number < 0 || !possibilities.always(i) || stated(axis.path + ".name")) continue;
    const engine::Section& section = table().sections[std::size_t(number)];
    const bool whole =
        !section.library.empty() &&
        std::ranges::all_of(axis.settings, [&section](const Setting& setting) {
          return setting.last_edit - setting.first_edit == section.last_leaf - section.first_leaf;
        });
    for (const StatedField& field : base) {
      if (!whole || !field.path.starts_with(axis.path + ".") || has_axis(field.path)) continue;
      const std::string name = field.path.substr(axis.path.size() + 1);
      reading.mistake(field.where,
                      "'" + field.path + "' of the base is in no point: the values of the axis '" +
                          axis.path + "' are whole specs, which set it",
                      "state it in these, as in '{from: NAME, " + name +
                          ": ...}', or for all of them as an axis, '- " + field.path + ": [...]'");
    }
  }
}

namespace {

// A role of the base that no point has, and why.
struct IdleRole {
  std::string name;
  engine::Location where;
  LeafUse reason;

  std::string said() const { return said_idle(name, reason); }
  // Others wait for what an axis, or a user's next edit, may bring: images, drafts.
  bool of_another_task() const { return reason.where().starts_with("task is "); }
};

std::vector<IdleRole> idle_roles(const SpaceParts& parts,
                                 const std::map<int, engine::Location>& roles) {
  const Possibilities possibilities(parts);
  std::vector<IdleRole> idle;
  for (const auto& [present, where] : roles) {
    const bool stated = possibilities.of(present).any([](double value) { return value != 0; });
    const Reason reason =
        stated ? engine::why_inert(present, possibilities.can_be()) : std::nullopt;
    const std::string& path = engine::leaf_at(present).path;
    if (reason) idle.push_back({path.substr(0, path.rfind('.')), where, *reason});
  }
  return idle;
}

}  // namespace

std::vector<std::string> notes_on_idle_fields(const SpaceParts& parts,
                                              const std::vector<StatedField>& base,
                                              const std::map<int, engine::Location>& roles) {
  std::vector<std::string> notes;
  const auto note = [&notes](const engine::Location& where, const std::string& said) {
    notes.push_back(located(where, said));
  };
  for (const IdleRole& role : idle_roles(parts, roles)) note(role.where, role.said());
  const Possibilities possibilities(parts);
  const Counting counting(possibilities);
  const engine::Scenario defaults;
  for (const StatedField& field : base) {
    const int number = table().find_leaf(field.path);
    if (number < 0) {
      const Reason reason = why_idle_section(field.path, counting);
      if (reason) note(field.where, said_idle(field.path, *reason));
      continue;
    }
    const engine::Leaf& leaf = engine::leaf_at(number);
    if (engine::of_role(leaf)) continue;
    const engine::LeafValue value = engine::get_leaf(parts.base, leaf);
    // What is stated as it is by default changes nothing, wherever it counts; but it may be another value.
    const bool as_by_default = value == engine::get_leaf(defaults, leaf);
    const Reason reason = as_by_default ? std::nullopt : counting.why_inert(number);
    const std::string said =
        reason ? said_idle(field.path, *reason) : another_value(number, value, counting);
    if (!said.empty()) note(field.where, said);
  }
  return notes;
}

namespace {

// Overrides of a sub-sweep's base, each beside what its own points can be.
class IdleOverrides {
 public:
  IdleOverrides(const SpaceParts& parts, const std::vector<engine::Location>& places)
      : parts_(parts), places_(places) {}

  std::vector<std::string> notes() && {
    look(parts_.root, Possibilities(parts_));
    return std::move(notes_);
  }

 private:
  void look(const SpaceNode& node, const Possibilities& possibilities) {
    for (const SpaceNode& child : node.children) look(child, possibilities);
    if (node.branches.empty()) return;
    const Possibilities around = possibilities.without(node);
    for (const Branch& branch : node.branches) {
      const Possibilities here = around.with(branch);
      const Counting counting(here);
      for (const int axis : branch.fixed) note(axis, counting);
      look(branch.node, here);
    }
  }

  void note(int number, const Counting& counting) {
    const Axis& axis = parts_.axes[std::size_t(number)];
    const bool as_by_default = std::ranges::all_of(axis.edits, [this](const Edit& edit) {
      return edit.value == engine::get_leaf(defaults_, engine::leaf_at(edit.leaf));
    });
    if (as_by_default || axis.role != kNone) return;
    std::string said;
    if (const Reason reason = why_all_inert(leaves_of(axis), counting)) {
      said = said_idle(axis.path, *reason);
    } else {
      for (const Edit& edit : axis.edits) {
        if (said.empty()) said = another_value(edit.leaf, edit.value, counting);
      }
    }
    if (!said.empty()) notes_.push_back(located(places_[std::size_t(number)], said));
  }

  const SpaceParts& parts_;
  const std::vector<engine::Location>& places_;
  const engine::Scenario defaults_;
  std::vector<std::string> notes_;
};

}  // namespace

std::vector<std::string> notes_on_idle_overrides(const SpaceParts& parts,
                                                 const std::vector<engine::Location>& places) {
  return IdleOverrides(parts, places).notes();
}

void check_inert_axes(const SpaceParts& parts, const std::vector<engine::Location>& places,
                      Reading& reading) {
  const Possibilities possibilities(parts);
  const PossibleValues tasks = possibilities.of(table().find_leaf("task"));
  const Counting counting(possibilities);
  for (std::size_t i = 0; i < parts.axes.size(); ++i) {
    const Axis& axis = parts.axes[i];
    // Overrides of a sub-sweep's base are no axes, though they are kept as such.
    if (axis.label_column == kNone && axis.interval.leaf == kNone) continue;
    const Reason reason = why_all_inert(leaves_of(axis), counting);
    if (!reason) {
      check_values(axis, places[i], counting, reading);
      continue;
    }
    std::string hint = counterpart_hint(axis.path, tasks);
    if (hint.empty()) hint = "remove the axis, or change what it depends on";
    reading.mistake(places[i], said_idle(axis.path, *reason), hint);
  }
}

void check_inert_roles(const SpaceParts& parts, const std::map<int, engine::Location>& roles,
                       Reading& reading) {
  for (const IdleRole& role : idle_roles(parts, roles)) {
    if (role.of_another_task()) reading.mistake(role.where, role.said(), "remove it");
  }
}

}  // namespace sweep

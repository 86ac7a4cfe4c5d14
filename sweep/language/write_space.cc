// A space as the language writes it, with nothing left to look up: sections are spelled out.
#include <algorithm>
#include <string>
#include <vector>

#include "engine/base/enum_names.h"
#include "sweep/language/load_resources.h"
#include "sweep/language/read_value.h"
#include "sweep/language/write_yaml.h"
#include "sweep/space/roles.h"

namespace sweep {
namespace {

using engine::Leaf;
using engine::Section;

std::string indented(const std::string& text, std::size_t by) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    result += std::string(by, ' ') + text.substr(at, end + 1 - at);
    at = end + 1;
  }
  return result;
}

// Text in quotes, always: expressions are full of YAML's own characters.
std::string quoted(const std::string& text) {
  const std::string scalar = yaml_scalar(text);
  return scalar.starts_with('"') ? scalar : '"' + scalar + '"';
}

class SpaceWriter {
 public:
  explicit SpaceWriter(const SpaceParts& parts) : parts_(parts) {}

  std::string run() {
    const std::string base =
        fields_yaml(parts_.base, nullptr, LeavesToWrite::all_but_defaults) + roles();
    text_ = base.empty() ? "base: {}\n" : "base:\n" + indented(base, 2);
    if (!parts_.root.children.empty()) {
      text_ += "axes:\n";
      for (const SpaceNode& child : parts_.root.children) node(child, 2);
    }
    if (!parts_.derivations.empty()) text_ += "derive:\n";
    for (const Derivation& derivation : parts_.derivations) {
      line(2, engine::leaf_at(derivation.leaf).path + ": " + formula(derivation.formula));
    }
    std::vector<int> everywhere;
    for (std::size_t i = 0; i < parts_.requirements.size(); ++i) {
      const Requirement& requirement = parts_.requirements[i];
      if (requirement.everywhere && requirement.formula != kNone) everywhere.push_back(int(i));
    }
    requirements(everywhere, 0);
    return std::move(text_);
  }

 private:
  // What the base says of deployments beside the main one, and nothing that follows.
  std::string roles() const {
    std::string text;
    const auto add = [&text](const Leaf& leaf, const engine::LeafValue& value) {
      text += leaf.path + ": " + yaml_scalar(value_text(leaf, value)) + "\n";
    };
    engine::each_role(parts_.base, [&](std::string_view name, const engine::Role& role) {
      const int presence = role_of(name);
      const bool said = std::ranges::any_of(parts_.stated_of_roles, [&](const Edit& edit) {
        return engine::leaf_at(edit.leaf).presence == presence;
      });
      if (role.present || said) add(engine::leaf_at(presence), role.present);
    });
    for (const Edit& edit : parts_.stated_of_roles) add(engine::leaf_at(edit.leaf), edit.value);
    return text;
  }

  void line(std::size_t indent, const std::string& text) {
    text_ += std::string(indent, ' ') + text + "\n";
  }
  std::string formula(int number) const {
    return quoted(parts_.formulas[std::size_t(number)].source);
  }
  const Axis& axis_of(const SpaceNode& node) const { return parts_.axes[std::size_t(node.axis)]; }

  void requirements(const std::vector<int>& numbers, std::size_t indent) {
    if (!numbers.empty()) line(indent, "require:");
    for (const int number : numbers) {
      const Requirement& requirement = parts_.requirements[std::size_t(number)];
      line(indent + 2, "- {expr: " + formula(requirement.formula) +
                           ", reason: " + quoted(requirement.reason) + "}");
    }
  }

  // The edits of one setting as a value: a scalar for a leaf, a map for a section.
  std::string value(const Axis& axis, const Setting& setting) const {
    const int section_number = engine::leaf_table().find_section(axis.path);
    if (section_number < 0) {
      const Edit& edit = axis.edits[setting.first_edit];
      return yaml_scalar(value_text(engine::leaf_at(edit.leaf), edit.value));
    }
    const Section& section = engine::leaf_table().sections[std::size_t(section_number)];
    // Every leaf is set: say so with `from`, which starts from the defaults, and leave those out.
    const bool whole = !section.library.empty() && setting.last_edit - setting.first_edit ==
                                                       section.last_leaf - section.first_leaf;
    const engine::Scenario defaults;
    std::string fields;
    for (std::uint32_t i = setting.first_edit; i < setting.last_edit; ++i) {
      const Leaf& leaf = engine::leaf_at(axis.edits[i].leaf);
      if (whole && axis.edits[i].value == engine::get_leaf(defaults, leaf)) continue;
      fields += (fields.empty() ? "" : ", ") + leaf.path.substr(axis.path.size() + 1) + ": " +
                yaml_scalar(value_text(leaf, axis.edits[i].value));
    }
    return whole ? "{from: {" + fields + "}}" : "{" + fields + "}";
  }

  // What the file that a value names holds, as a comment: a sweep over the same names of other files is another
  // one. A section says it as one of its fields.
  std::string content(const Axis& axis, const Setting& setting) const {
    if (engine::leaf_table().find_section(axis.path) >= 0) return "";
    for (std::uint32_t i = setting.first_edit; i < setting.last_edit; ++i) {
      if (!is_checksum(axis.edits[i].leaf)) continue;
      return "  # content " + std::get<std::string>(axis.edits[i].value);
    }
    return "";
  }

  // "[1, 2, 4]" where nothing more needs saying.
  bool is_simple(const Axis& axis) const {
    if (axis.when != kNone) return false;
    for (const Setting& setting : axis.settings) {
      if (setting.when != kNone || yaml_scalar(label(axis, setting)) != value(axis, setting) ||
          !content(axis, setting).empty())
        return false;
    }
    return true;
  }
  std::string label(const Axis& axis, const Setting& setting) const {
    return parts_.label_columns[std::size_t(axis.label_column)].values[std::size_t(setting.label)];
  }

  std::string simple_list(const Axis& axis) const {
    std::string list;
    for (const Setting& setting : axis.settings) {
      list += (list.empty() ? "" : ", ") + value(axis, setting);
    }
    return "[" + list + "]";
  }

  void values(const Axis& axis, std::size_t indent) {
    line(indent, "values:");
    for (const Setting& setting : axis.settings) {
      std::string item =
          "{value: " + value(axis, setting) + ", label: " + quoted(label(axis, setting));
      if (setting.when != kNone) item += ", when: " + formula(setting.when);
      line(indent + 2, "- " + item + "}" + content(axis, setting));
    }
  }

  enum class Whens : std::uint8_t { own, of_group };

  void values_node(const SpaceNode& node, std::size_t indent, Whens whens) {
    const Axis& axis = axis_of(node);
    const bool has_when = axis.when != kNone && whens == Whens::own;
    if (!has_when && !axis.yields && is_simple_but_when(axis)) {
      return line(indent, "- " + axis.path + ": " + simple_list(axis));
    }
    line(indent, "- " + axis.path + ":");
    if (has_when) line(indent + 4, "when: " + formula(axis.when));
    if (axis.yields) line(indent + 4, "yields: true");
    values(axis, indent + 4);
  }
  bool is_simple_but_when(const Axis& axis) const {
    Axis without = axis;
    without.when = kNone;
    return is_simple(without);
  }

  int first_when(const SpaceNode& node) const {
    if (node.axis != kNone) return axis_of(node).when;
    for (const SpaceNode& child : node.children) return first_when(child);
    for (const Branch& branch : node.branches) return first_when(branch.node);
    return kNone;
  }

  void node(const SpaceNode& node_, std::size_t indent, Whens whens = Whens::own) {
    switch (node_.kind) {
      case SpaceNode::Kind::values:
        return values_node(node_, indent, whens);
      case SpaceNode::Kind::product:
        line(indent, node_.children.empty() ? "- product: []" : "- product:");
        for (const SpaceNode& child : node_.children) node(child, indent + 4, whens);
        return;
      case SpaceNode::Kind::zip:
        line(indent, "- zip:");
        if (const int when = first_when(node_); when != kNone && whens == Whens::own) {
          line(indent + 4, "- when: " + formula(when));
        }
        for (const SpaceNode& child : node_.children) node(child, indent + 4, Whens::of_group);
        return;
      case SpaceNode::Kind::concat:
        line(indent, "- concat:");
        for (const Branch& branch_ : node_.branches) branch(node_, branch_, indent + 4, whens);
        return;
      case SpaceNode::Kind::sample:
        return sample(node_, indent);
    }
  }

  void branch(const SpaceNode& concat, const Branch& branch, std::size_t indent, Whens whens) {
    line(indent, "-");
    const std::size_t inside = indent + 2;
    if (concat.label_column != kNone) {
      const auto& labels = parts_.label_columns[std::size_t(concat.label_column)].values;
      line(inside, "name: " + yaml_scalar(labels[std::size_t(branch.label)]));
    }
    if (!branch.fixed.empty()) line(inside, "base:");
    for (const int number : branch.fixed) {
      const Axis& axis = parts_.axes[std::size_t(number)];
      const Setting& setting = axis.settings[0];
      line(inside + 2, axis.path + ": " + value(axis, setting) + content(axis, setting));
    }
    requirements(branch.requirements, inside);
    line(inside, branch.node.children.empty() ? "axes: []" : "axes:");
    for (const SpaceNode& child : branch.node.children) node(child, inside + 2, whens);
  }

  void sample(const SpaceNode& node, std::size_t indent) {
    const SampleDimension::Options& options = node.sample;
    line(indent, "- sample:");
    line(indent + 4, std::string(enum_names(SampleMethod{})[std::size_t(options.method)]) + ": " +
                         std::to_string(options.count));
    if (options.method != SampleMethod::sobol || options.scrambled) {
      line(indent + 4, "seed: " + std::to_string(options.seed));
    }
    if (const int when = axis_of(node.children[0]).when; when != kNone) {
      line(indent + 4, "when: " + formula(when));
    }
    line(indent + 4, "of:");
    for (const SpaceNode& child : node.children) {
      const Axis& axis = axis_of(child);
      if (axis.settings.empty()) {
        line(indent + 6, axis.path + ": " + interval(axis.interval));
      } else {
        line(indent + 6, axis.path + ":");
        if (!axis.drawn_with.empty()) line(indent + 8, "with: " + axis.drawn_with);
        if (axis.yields) line(indent + 8, "yields: true");
        values(axis, indent + 8);
      }
    }
  }

  static std::string interval(const Interval& interval) {
    const Leaf& leaf = engine::leaf_at(interval.leaf);
    const auto end = [&](double value) {
      return leaf.kind == engine::LeafKind::integer ? std::to_string(std::int64_t(value))
                                                    : yaml_scalar(value_text(leaf, value));
    };
    const bool linear = interval.scale == Interval::Scale::linear;
    return std::string(linear ? "{linear: [" : "{geometric: [") + end(interval.low) + ", " +
           end(interval.high) + "]}";
  }

  const SpaceParts& parts_;
  std::string text_;
};

}  // namespace

std::string space_yaml(const SpaceParts& parts) { return SpaceWriter(parts).run(); }

}  // namespace sweep

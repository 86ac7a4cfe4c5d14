// How a position becomes a point: base, axes (broad paths first), `when`, `derive`, `require`, key.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "engine/base/check.h"
#include "engine/leaves/leaves.h"
#include "sweep/space/leaf_write.h"
#include "sweep/space/powers.h"
#include "sweep/space/sampled_value.h"
#include "sweep/space/space.h"
#include "sweep/space/space_parts.h"
#include "sweep/space/text_code.h"

namespace sweep {
namespace {

// What one axis is at one position.
struct Choice {
  const Axis* axis = nullptr;
  const Setting* setting = nullptr;  // of a listed axis
  double sample = 0;                 // of an interval: in (0, 1)
  bool lead = true;                  // the first position: it stands for all where `when` is false
  bool active = true;
};

// Whether a position is the first of its axis, or (in a zip, whose members move together) of the zip.
enum class Lead : std::uint8_t { by_position, yes, no };

// A power that is drawn or computed is stated, too.
void take_back(int leaf, engine::Scenario& scenario) {
  for (const Edit& edit : taken_back_by(leaf)) sweep::apply(edit, scenario);
}

bool is_conditional(const Choice& choice) {
  return choice.axis->when != kNone || (choice.setting != nullptr && choice.setting->when != kNone);
}

}  // namespace

struct PointBuilder::Scratch {
  Space space;  // keeps the parts alive
  const SpaceParts& parts;
  std::vector<Expression> expressions;
  std::vector<Choice> choices;                  // in the order written
  std::vector<std::size_t> order;               // of application
  std::vector<signed char> outcomes;            // of each formula at this point: -1 not asked yet
  std::vector<char> local;                      // requirements of the branches this point is in
  std::vector<std::vector<double>> name_codes;  // of each derivation into names
  std::vector<Edit> derived_of_roles;           // at this point
  int rejected_by = kNone;

  explicit Scratch(const Space& from) : space(from), parts(from.parts()) {
    for (const Formula& formula : parts.formulas) expressions.emplace_back(formula);
    for (const Derivation& derivation : parts.derivations) {
      std::vector<double>& codes = name_codes.emplace_back();
      for (const auto name : engine::leaf_table().leaves[std::size_t(derivation.leaf)].names) {
        codes.push_back(text_code(name));
      }
    }
    choices.reserve(parts.axes.size());
    order.reserve(parts.axes.size());
    outcomes.resize(parts.formulas.size());
    local.resize(parts.requirements.size());
  }

  void start();
  void walk(const SpaceNode& node, std::uint64_t index, Lead given, Point& point);
  bool arrange();
  void choose(int axis, std::uint64_t position, bool lead, Point& point);
  void choose_sample(const SpaceNode& node, std::uint64_t index, bool lead, Point& point);
  void apply(const Choice& choice, engine::Scenario& scenario) const;
  void apply_active(engine::Scenario& scenario) const;
  void apply_to_roles(engine::Scenario& scenario) const;
  void resolve_roles(engine::Scenario& scenario) const;
  bool holds(int formula, const engine::Scenario& scenario);
  Admission apply_conditional(Point& point);
  std::optional<engine::LeafValue> derived(const Derivation& derivation,
                                           const std::vector<double>& codes,
                                           const engine::Scenario& scenario);
  bool derive_all(engine::Scenario& scenario);
  bool meets_requirements(const engine::Scenario& scenario);
};

void PointBuilder::Scratch::start() {
  rejected_by = kNone;
  choices.clear();
  derived_of_roles.clear();
  std::fill(outcomes.begin(), outcomes.end(), static_cast<signed char>(-1));
  std::fill(local.begin(), local.end(), 0);
}

// Broad paths before narrow ones. Returns whether there are conditions to ask.
bool PointBuilder::Scratch::arrange() {
  order.clear();
  bool conditional = false;
  // Stable insertion: a handful of choices, nearly in order.
  for (std::size_t i = 0; i < choices.size(); ++i) {
    Choice& choice = choices[i];
    choice.active = !is_conditional(choice);
    conditional |= !choice.active;
    std::size_t place = order.size();
    while (place > 0 && choices[order[place - 1]].axis->depth > choice.axis->depth) --place;
    order.insert(order.begin() + std::ptrdiff_t(place), i);
  }
  return conditional;
}

void PointBuilder::Scratch::choose(int axis_number, std::uint64_t position, bool lead,
                                   Point& point) {
  const Axis& axis = parts.axes[std::size_t(axis_number)];
  const Setting& setting = axis.settings[std::size_t(position)];
  choices.push_back({.axis = &axis, .setting = &setting, .lead = lead});
  if (axis.label_column != kNone) point.labels[std::size_t(axis.label_column)] = setting.label;
}

void PointBuilder::Scratch::choose_sample(const SpaceNode& node, std::uint64_t index, bool lead,
                                          Point& point) {
  for (const SpaceNode& child : node.children) {
    const Axis& axis = parts.axes[std::size_t(child.axis)];
    const double sample = axis.dimension(index);
    if (axis.settings.empty()) {
      choices.push_back({.axis = &axis, .sample = sample, .lead = lead});
    } else {
      const double count = double(axis.settings.size());
      choose(child.axis, std::uint64_t(std::min(std::floor(sample * count), count - 1)), lead,
             point);
    }
  }
}

void PointBuilder::Scratch::walk(const SpaceNode& node, std::uint64_t index, Lead given,
                                 Point& point) {
  const bool lead = given == Lead::by_position ? index == 0 : given == Lead::yes;
  switch (node.kind) {
    case SpaceNode::Kind::values:
      choose(node.axis, node.order.empty() ? index : node.order[index], lead, point);
      return;
    case SpaceNode::Kind::sample:
      choose_sample(node, index, lead, point);
      return;
    case SpaceNode::Kind::zip:
      for (const SpaceNode& child : node.children) {
        walk(child, index, lead ? Lead::yes : Lead::no, point);
      }
      return;
    case SpaceNode::Kind::product: {
      // The first child is the most significant digit.
      std::uint64_t block = node.size;
      for (const SpaceNode& child : node.children) {
        block /= child.size;
        walk(child, index / block, given, point);
        index %= block;
      }
      return;
    }
    case SpaceNode::Kind::concat: {
      const auto after = std::upper_bound(
          node.branches.begin(), node.branches.end(), index,
          [](std::uint64_t value, const Branch& branch) { return value < branch.begin; });
      const Branch& branch = *(after - 1);
      for (const int axis : branch.fixed) choose(axis, 0, true, point);
      for (const int requirement : branch.requirements) local[std::size_t(requirement)] = 1;
      if (node.label_column != kNone) point.labels[std::size_t(node.label_column)] = branch.label;
      walk(branch.node, index - branch.begin, given, point);
      return;
    }
  }
}

void PointBuilder::Scratch::apply(const Choice& choice, engine::Scenario& scenario) const {
  if (choice.setting == nullptr) {
    const Interval& interval = choice.axis->interval;
    const engine::Leaf& leaf = engine::leaf_table().leaves[std::size_t(interval.leaf)];
    engine::set_leaf(scenario, leaf, sampled_value(interval, leaf.kind, choice.sample));
    take_back(interval.leaf, scenario);
    return;
  }
  for (std::uint32_t i = choice.setting->first_write; i < choice.setting->last_write; ++i) {
    write(choice.axis->writes[i], scenario);
  }
}

void PointBuilder::Scratch::apply_active(engine::Scenario& scenario) const {
  scenario = parts.base;
  for (const std::size_t i : order) {
    if (choices[i].active && choices[i].axis->role == kNone) apply(choices[i], scenario);
  }
  if (!parts.roles.empty()) resolve_roles(scenario);
}

void PointBuilder::Scratch::apply_to_roles(engine::Scenario& scenario) const {
  for (const std::size_t i : order) {
    if (choices[i].active && choices[i].axis->role != kNone) apply(choices[i], scenario);
  }
}

// Asked whenever the main deployment has changed: a role follows it but for what is stated of the role.
void PointBuilder::Scratch::resolve_roles(engine::Scenario& scenario) const {
  const auto& leaves = engine::leaf_table().leaves;
  for (const int role : parts.roles) {
    const engine::Leaf& presence = leaves[std::size_t(role)];
    const bool implied = std::ranges::any_of(choices, [role](const Choice& choice) {
      return choice.active && choice.axis->role == role && !choice.axis->states_presence;
    });
    engine::set_leaf(scenario, presence,
                     implied || engine::leaf_integer(parts.base, presence) != 0);
  }
  // Once for the roles' presence, and once more for their fields, which filling overwrites.
  apply_to_roles(scenario);
  engine::fill_roles(scenario);
  for (const LeafWrite& edit : parts.writes_of_roles) write(edit, scenario);
  apply_to_roles(scenario);
  for (const Edit& edit : derived_of_roles) sweep::apply(edit, scenario);
}

bool PointBuilder::Scratch::holds(int formula, const engine::Scenario& scenario) {
  signed char& outcome = outcomes[std::size_t(formula)];
  if (outcome < 0) outcome = expressions[std::size_t(formula)].holds(scenario) ? 1 : 0;
  return outcome == 1;
}

// In the order written, each condition sees the point with every unconditional axis and every earlier
// conditional one.
Admission PointBuilder::Scratch::apply_conditional(Point& point) {
  for (Choice& choice : choices) {
    if (choice.active) continue;
    const int axis_when = choice.axis->when;
    if (axis_when != kNone && !holds(axis_when, point.scenario)) {
      if (!choice.lead) return Admission::not_applicable;
      const int column = choice.axis->label_column;
      if (column != kNone) point.labels[std::size_t(column)] = kNone;
      continue;
    }
    const int value_when = choice.setting != nullptr ? choice.setting->when : kNone;
    if (value_when != kNone && !holds(value_when, point.scenario)) return Admission::not_applicable;
    choice.active = true;
    if (choice.axis->holds_narrower) {
      apply_active(point.scenario);
      continue;
    }
    apply(choice, point.scenario);
    if (!parts.roles.empty()) resolve_roles(point.scenario);
  }
  return Admission::admitted;
}

// The value of a derivation's formula as its leaf takes it; nothing where it lies outside the leaf's range.
std::optional<engine::LeafValue> PointBuilder::Scratch::derived(const Derivation& derivation,
                                                                const std::vector<double>& codes,
                                                                const engine::Scenario& scenario) {
  const engine::Leaf& leaf = engine::leaf_table().leaves[std::size_t(derivation.leaf)];
  const Formula& formula = parts.formulas[std::size_t(derivation.formula)];
  const double value = expressions[std::size_t(derivation.formula)].value(scenario);
  switch (leaf.kind) {
    case engine::LeafKind::quantity:
    case engine::LeafKind::number:
      if (!(value >= leaf.range.low && value <= leaf.range.high)) return std::nullopt;
      return std::isfinite(value) ? std::optional<engine::LeafValue>(value) : std::nullopt;
    case engine::LeafKind::integer: {
      const double whole = rounded_down(value);
      if (!(whole >= leaf.range.low && whole <= leaf.range.high)) return std::nullopt;
      if (std::abs(whole) > 0x1p62) return std::nullopt;
      return std::int64_t(whole);
    }
    case engine::LeafKind::boolean:
      return std::isnan(value) ? std::nullopt : std::optional<engine::LeafValue>(value != 0);
    case engine::LeafKind::enumeration:
      for (std::size_t i = 0; i < codes.size(); ++i) {
        if (codes[i] == value) return std::int64_t(i);
      }
      return std::nullopt;
    case engine::LeafKind::text:
      for (const std::string& text : formula.texts) {
        if (text_code(text) == value) return text;
      }
      for (const int other : formula.leaves) {
        const engine::Leaf& source = engine::leaf_table().leaves[std::size_t(other)];
        if (source.kind != engine::LeafKind::text) continue;
        const std::string& text = engine::leaf_text(scenario, source);
        if (text_code(text) == value) return text;
      }
      return std::nullopt;
  }
  return std::nullopt;
}

bool PointBuilder::Scratch::derive_all(engine::Scenario& scenario) {
  for (std::size_t i = 0; i < parts.derivations.size(); ++i) {
    const Derivation& derivation = parts.derivations[i];
    const engine::Leaf& leaf = engine::leaf_table().leaves[std::size_t(derivation.leaf)];
    if (!engine::is_present(scenario, leaf)) continue;
    auto value = derived(derivation, name_codes[i], scenario);
    if (!value) {
      rejected_by = derivation.requirement;
      return false;
    }
    const Edit edit{derivation.leaf, *std::move(value)};
    sweep::apply(edit, scenario);
    take_back(edit.leaf, scenario);
    if (parts.roles.empty()) continue;
    if (leaf.presence >= 0) {
      derived_of_roles.push_back(edit);
      for (const Edit& other : taken_back_by(edit.leaf)) derived_of_roles.push_back(other);
    } else {
      resolve_roles(scenario);
    }
  }
  return true;
}

bool PointBuilder::Scratch::meets_requirements(const engine::Scenario& scenario) {
  for (std::size_t i = 0; i < parts.requirements.size(); ++i) {
    const Requirement& requirement = parts.requirements[i];
    if (requirement.formula == kNone) continue;
    if (!requirement.everywhere && local[i] == 0) continue;
    if (!expressions[std::size_t(requirement.formula)].holds(scenario)) {
      rejected_by = int(i);
      return false;
    }
  }
  return true;
}

PointBuilder::PointBuilder(const Space& space) : scratch_(std::make_unique<Scratch>(space)) {}
PointBuilder::~PointBuilder() = default;
PointBuilder::PointBuilder(PointBuilder&&) noexcept = default;

Admission PointBuilder::build(std::uint64_t index, Point& point) {
  Scratch& scratch = *scratch_;
  const SpaceParts& parts = scratch.parts;
  engine::check(index < parts.root.size, "a position inside the space");
  point.index = index;
  point.labels.assign(parts.label_columns.size(), kNone);
  scratch.start();
  scratch.walk(parts.root, index, Lead::by_position, point);
  const bool conditional = scratch.arrange();
  scratch.apply_active(point.scenario);
  if (conditional) {
    const Admission admission = scratch.apply_conditional(point);
    if (admission != Admission::admitted) return admission;
  }
  if (!scratch.derive_all(point.scenario)) return Admission::rejected;
  follow_rated_powers(point.scenario);
  if (!scratch.meets_requirements(point.scenario)) return Admission::rejected;
  point.key = parts.resources == nullptr
                  ? engine::key_of(point.scenario)
                  : engine::key_of(point.scenario, parts.resources->calibrations);
  return Admission::admitted;
}

int PointBuilder::rejected_by() const { return scratch_->rejected_by; }

}  // namespace sweep

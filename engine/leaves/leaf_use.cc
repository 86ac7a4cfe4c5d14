#include "engine/leaves/leaf_use.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <variant>

#include "engine/base/check.h"
#include "engine/leaves/facts.h"
#include "engine/leaves/leaf_paths.h"

namespace engine {
namespace {

using Kind = Test::Kind;

// What every field of a role asks before anything else of its own.
constexpr Condition kPresence = said<"that deployment is present", is_set<"present">>;

bool is_among(const Test& test, double position) {
  const bool named = (test.names >> std::uint64_t(position) & 1) != 0;
  return named == (test.kind != Kind::not_named);
}

// The tasks, as bits, in which a condition that asks for nothing else holds; 0: it asks for something else.
std::uint64_t tasks_of(const Condition& condition) {
  std::uint64_t tasks = 0;
  for (const Test& test : condition) {
    if (test.path != "task") return 0;
    for (std::size_t task = 0; task < kTaskTraits.size(); ++task) {
      if (is_among(test, double(task))) tasks |= std::uint64_t{1} << task;
    }
  }
  return tasks;
}

// Whether a condition of a section is about the leaf itself, which is then free of it: of all fields of an index, the one that says
// whether there is an index.
bool asks_for(const LeafUse& use) {
  const std::string& path = leaf_at(use.leaf).path;
  return std::ranges::any_of(*use.condition, [&](const Test& test) {
    // The first is quick, and seldom so.
    return !test.path.empty() && path.ends_with(test.path) && path == path_of(use, test.path);
  });
}

// Whether it holds wherever a value of the scenario is.
bool always_holds(const LeafUse& use) {
  return std::ranges::any_of(*use.condition, [&use](const Test& test) {
    return follows_from_place(test) && holds_in_place(test, leaf_at(use.leaf));
  });
}

}  // namespace

bool is_never(const LeafUse& use) {
  return std::ranges::all_of(*use.condition, follows_from_place);
}

std::vector<LeafUse> uses_of(int number) {
  const Leaf& leaf = leaf_at(number);
  // The ranges around the leaf and its own, from the inside out.
  struct Line {
    const Range* range;
    int section;
  };
  std::array<Line, 8> lines{Line{&leaf.range, leaf.section}};
  std::size_t count = 1;
  for (int at = leaf.section; at >= 0; ++count) {
    const Section& section = leaf_table().sections[std::size_t(at)];
    lines.at(count) = {&section.range, section.around};
    at = section.around;
  }
  std::vector<LeafUse> uses, tasks, others;
  while (count-- > 0) {
    const Line& line = lines[count];
    for (const Condition* condition : line.range->conditions) {
      if (condition == nullptr) break;
      const LeafUse use{condition, number, line.section, of_role(leaf) && line.section < 0};
      if (std::ranges::find(leaf.range.despite, condition) != leaf.range.despite.end()) continue;
      if (always_holds(use) || asks_for(use)) continue;
      const bool of_tasks = tasks_of(*condition) != 0;
      (is_never(use) ? uses : of_tasks ? tasks : others).push_back(use);
    }
  }
  // The narrowest first: it says most to a user of another task.
  std::ranges::stable_sort(
      tasks, {}, [](const LeafUse& use) { return std::popcount(tasks_of(*use.condition)); });
  uses.insert(uses.end(), tasks.begin(), tasks.end());
  if (leaf.presence >= 0) uses.push_back({&kPresence, number, leaf.section});
  uses.insert(uses.end(), others.begin(), others.end());
  return uses;
}

std::vector<int> leaves_behind(const Test& test, int leaf) {
  if (test.kind == Kind::has) return leaves_at(path_for(leaf_at(leaf), test.path));
  std::vector<int> leaves;
  for (const std::string_view path : fact_entry(test.fact).behind) {
    const std::vector<int> there = leaves_at(path_for(leaf_at(leaf), path));
    leaves.insert(leaves.end(), there.begin(), there.end());
  }
  return leaves;
}

bool holds_in(const Scenario& scenario, const Test& test, int number) {
  const Leaf& leaf = leaf_at(number);
  if (test.kind == Kind::has) {
    const int section = leaf_table().find_section(path_for(leaf, test.path));
    check(section >= 0, "a condition is about a section that exists");
    return test.holds(reinterpret_cast<const char*>(&scenario) +
                      leaf_table().sections[std::size_t(section)].offset);
  }
  const Deployment* deployment = &scenario;
  each_role(scenario, [&](std::string_view name, const Role& role) {
    if (name == traits_of(leaf.role).name) deployment = &role.deployment;
  });
  return fact_entry(test.fact).holds(scenario, *deployment);
}

double condition_value(const LeafValue& value) {
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return double(*integer);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? 1 : 0;
  return std::get<std::string>(value).empty() ? 0 : 1;
}

namespace {

bool can_hold(const LeafUse& use, const Test& test, const CanBe& can_be) {
  const auto leaves = [&] { return leaves_at(path_of(use, test.path)); };
  switch (test.kind) {
    case Kind::named:
    case Kind::not_named: {
      const auto among = [&test](double value) { return is_among(test, value); };
      const std::optional<Task> own = traits_of(leaf_at(use.leaf).role).task;
      if (own && !use.of_main && test.path == "task") return among(double(*own));
      return can_be.value(leaves().front(), among);
    }
    case Kind::above:
      return can_be.value(leaves().front(), [&test](double value) { return value > test.bound; });
    case Kind::set:
      return std::ranges::any_of(leaves(), [&](int leaf) {
        return can_be.value(leaf, [](double value) { return value != 0; });
      });
    case Kind::zero:
      return std::ranges::all_of(leaves(), [&](int leaf) {
        return can_be.value(leaf, [](double value) { return value == 0; });
      });
    case Kind::has:
    case Kind::fact:
      return can_be.fact(test, use.leaf);
    case Kind::role:
    case Kind::inside:
    case Kind::outside:
      break;
  }
  return false;
}

bool can_hold(const LeafUse& use, const CanBe& can_be) {
  return std::ranges::any_of(*use.condition,
                             [&](const Test& test) { return can_hold(use, test, can_be); });
}

enum class Asking : std::uint8_t { all, but_presence };

std::optional<LeafUse> first_reason(int number, const CanBe& can_be, Asking asking = Asking::all) {
  for (const LeafUse& use : uses_of(number)) {
    if (asking == Asking::but_presence && use.condition == &kPresence) continue;
    if (!can_hold(use, can_be)) return use;
  }
  return std::nullopt;
}

// Samples to train on are made by the engine and in the formats of the main deployment, as far as the role states no others.
bool makes_samples(const Leaf& leaf, const CanBe& can_be) {
  if (!leaf.path.starts_with("serving.") && !leaf.path.starts_with("quant.")) return false;
  static const int task = leaf_table().find_leaf("task");
  static const int prompts = leaf_table().find_leaf("train.rollout.prompts");
  const auto trains = [](double value) { return value == double(Task::train); };
  const auto some = [](double value) { return value > 0; };
  if (!can_be.value(task, trains) || !can_be.value(prompts, some)) return false;
  const int role = leaf_table().find_leaf("rollout." + leaf.path);
  return role >= 0 && !first_reason(role, can_be, Asking::but_presence);
}

// Whether a role has the leaf from the main deployment, and reads it. What makes samples to train on is another question (above).
bool counts_in_a_role(int number, const CanBe& can_be) {
  if (!can_be.like_main) return false;
  const std::vector<Leaf>& leaves = leaf_table().leaves;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].of_main != number || leaves[i].role == DeploymentRole::rollout) continue;
    if (can_be.like_main(int(i)) && !first_reason(int(i), can_be)) return true;
  }
  return false;
}

}  // namespace

std::optional<LeafUse> why_inert(int number, const CanBe& can_be) {
  const std::optional<LeafUse> reason = first_reason(number, can_be);
  if (!reason) return std::nullopt;
  const bool counts = makes_samples(leaf_at(number), can_be) || counts_in_a_role(number, can_be);
  return counts ? std::nullopt : reason;
}

std::optional<ValueUse> why_another(int number, double value, const CanBe& can_be) {
  const Leaf& leaf = leaf_at(number);
  for (const ValueCondition& same : leaf.range.values) {
    if (same.unless == nullptr || double(same.value) != value) continue;
    const LeafUse unless{same.unless, number, leaf.section};
    if (!can_hold(unless, can_be)) {
      return ValueUse{leaf.names[same.value], leaf.names[same.otherwise], unless};
    }
  }
  return std::nullopt;
}

bool task_reads(Task task, int leaf) {
  static const int task_leaf = leaf_table().find_leaf("task");
  const auto value = [task](int other, const std::function<bool(double)>& predicate) {
    return other != task_leaf || predicate(double(task));
  };
  const auto fact = [](const Test&, int) { return true; };
  return !why_inert(leaf, CanBe{value, fact});
}

std::optional<Task> only_reader(const Leaf& leaf) {
  const int around =
      leaf_table().find_section(std::string_view(leaf.path).substr(0, leaf.path.find('.')));
  if (around < 0 || of_role(leaf)) return std::nullopt;
  for (const Condition* condition : leaf_table().sections[std::size_t(around)].range.conditions) {
    if (condition == nullptr) break;
    const std::uint64_t tasks = tasks_of(*condition);
    if (std::has_single_bit(tasks)) return static_cast<Task>(std::countr_zero(tasks));
  }
  return std::nullopt;
}

std::optional<LeafUse> why_inert(int leaf, const Scenario& scenario) {
  const auto value = [&](int other, const std::function<bool(double)>& predicate) {
    const Leaf& entry = leaf_table().leaves[std::size_t(other)];
    return predicate(condition_value(get_leaf(scenario, entry)));
  };
  const auto fact = [&](const Test& test, int of) { return holds_in(scenario, test, of); };
  return why_inert(leaf, CanBe{value, fact});
}

}  // namespace engine

#include "engine/leaves/leaf_use.h"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>

#include "engine/base/check.h"
#include "engine/leaves/leaf_use_rules.h"

namespace engine {
namespace {

using Kind = UseCondition::Kind;

// The leaf of a path, or every leaf of a section.
std::vector<int> leaves_at(std::string_view path) {
  const LeafTable& table = leaf_table();
  std::vector<int> leaves;
  if (const int leaf = table.find_leaf(path); leaf >= 0) leaves.push_back(leaf);
  if (const int section = table.find_section(path); section >= 0) {
    const Section& found = table.sections[std::size_t(section)];
    for (std::size_t i = found.first_leaf; i < found.last_leaf; ++i) leaves.push_back(int(i));
  }
  check(!leaves.empty(), "a condition is about a leaf or a section that exists");
  return leaves;
}

// The same place in the role that a leaf belongs to, where the role has it.
std::string beside(const Leaf& leaf, std::string_view path) {
  std::string there = leaf.path.substr(0, leaf.path.find('.') + 1) + std::string(path);
  const LeafTable& table = leaf_table();
  return table.find_leaf(there) >= 0 || table.find_section(there) >= 0 ? there : std::string(path);
}

// A path in the leaf's own deployment, where that is not the main one.
std::string path_for(const Leaf& leaf, std::string_view path) {
  return leaf.of_main >= 0 ? beside(leaf, path) : std::string(path);
}

bool can_hold(const UseCondition& condition, std::string_view path, const CanBe& can_be) {
  const std::vector<int> leaves = leaves_at(path);
  const auto among_names = [&condition, &leaves](double code) {
    const auto& names = leaf_table().leaves[std::size_t(leaves.front())].names;
    return std::ranges::find(condition.names, names[std::size_t(code)]) != condition.names.end();
  };
  switch (condition.kind) {
    case Kind::named:
      return can_be.value(leaves.front(), among_names);
    case Kind::above:
      return can_be.value(leaves.front(), [&](double value) { return value > condition.bound; });
    case Kind::switched_on:
    case Kind::set:
      return std::ranges::any_of(leaves, [&](int leaf) {
        return can_be.value(leaf, [](double value) { return value != 0; });
      });
    case Kind::zero:
      return std::ranges::all_of(leaves, [&](int leaf) {
        return can_be.value(leaf, [](double value) { return value == 0; });
      });
    case Kind::follows:
      break;
  }
  return true;
}

}  // namespace

std::vector<int> leaves_behind(const UseCondition& condition, int leaf) {
  std::vector<int> leaves;
  for (const std::string_view path : condition.names) {
    const std::vector<int> there = leaves_at(path_for(leaf_at(leaf), path));
    leaves.insert(leaves.end(), there.begin(), there.end());
  }
  return leaves;
}

bool holds_in(const Scenario& scenario, const UseCondition& condition, int leaf) {
  const std::string& path = leaf_at(leaf).path;
  const Deployment* deployment = &scenario;
  each_role(scenario, [&](std::string_view name, const Role& role) {
    if (leaf_at(leaf).of_main >= 0 && path.starts_with(name)) deployment = &role.deployment;
  });
  return condition.fact(scenario, *deployment);
}

std::span<const LeafUse> leaf_uses() {
  static const std::vector<LeafUse> uses = leaf_use_rules();
  return uses;
}

bool concerns(const LeafUse& use, std::string_view leaf_path) {
  return leaf_path == use.path ||
         (leaf_path.starts_with(use.path) && leaf_path[use.path.size()] == '.');
}

namespace {

// An entry that is about a leaf, itself or as the leaf of a role that is like one of the main deployment.
struct Concern {
  std::size_t use;  // its number
  bool of_role;

  auto operator<=>(const Concern&) const = default;
};

// Numbers of entries by their path. There is one for every leaf of a role, so that asking each of them about each leaf takes most of
// the start of a run.
const std::unordered_multimap<std::string_view, std::size_t>& uses_by_path() {
  static const auto table = [] {
    std::unordered_multimap<std::string_view, std::size_t> uses;
    for (std::size_t i = 0; i < leaf_uses().size(); ++i) uses.emplace(leaf_uses()[i].path, i);
    return uses;
  }();
  return table;
}

// In the order of the entries: the first that keeps a leaf from counting is the reason.
std::vector<Concern> concerns_of(const Leaf& leaf) {
  std::vector<Concern> found;
  // The path itself, and every section around it.
  const auto add = [&found](std::string_view path, bool of_role) {
    for (std::size_t end = path.find('.');; end = path.find('.', end + 1)) {
      const auto [first, last] = uses_by_path().equal_range(path.substr(0, end));
      for (auto at = first; at != last; ++at) {
        if (of_role && leaf_uses()[at->second].of != LeafUse::Of::all) continue;
        found.push_back({at->second, of_role});
      }
      if (end == std::string_view::npos) return;
    }
  };
  add(leaf.path, false);
  if (leaf.of_main >= 0) add(leaf_table().leaves[std::size_t(leaf.of_main)].path, true);
  std::ranges::sort(found);
  return found;
}

}  // namespace

double condition_value(const LeafValue& value) {
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return double(*integer);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? 1 : 0;
  return std::get<std::string>(value).empty() ? 0 : 1;
}

namespace {

// The first reason that does not ask whether `without` is there.
const LeafUse* first_reason(int number, const CanBe& can_be, std::string_view without) {
  const Leaf& leaf = leaf_table().leaves[std::size_t(number)];
  for (const Concern& concern : concerns_of(leaf)) {
    const LeafUse& use = leaf_uses()[concern.use];
    const bool asks = std::ranges::any_of(use.any_of, [&](const UseCondition& condition) {
      return !without.empty() && condition.path == without;
    });
    if (asks) continue;
    const auto holds = [&](const UseCondition& condition) {
      if (concern.of_role && condition.path == "task" && leaf.path.starts_with("rollout.")) {
        // It serves, whatever the main deployment does.
        return std::ranges::find(condition.names, "serve") != condition.names.end();
      }
      if (condition.kind == Kind::follows) return can_be.fact(condition, number);
      const std::string path =
          concern.of_role ? beside(leaf, condition.path) : std::string(condition.path);
      return can_hold(condition, path, can_be);
    };
    if (std::ranges::none_of(use.any_of, holds)) return &use;
  }
  return nullptr;
}

// Samples to train on are made by the engine and in the formats of the main deployment, as far as the role states no others.
bool makes_samples(const Leaf& leaf, const CanBe& can_be) {
  if (!leaf.path.starts_with("serving.") && !leaf.path.starts_with("quant.")) return false;
  const UseCondition trains{.path = "task", .names = {"train"}};
  const UseCondition samples{.path = "train.rollout.prompts", .kind = Kind::above, .bound = 0};
  if (!can_hold(trains, trains.path, can_be) || !can_hold(samples, samples.path, can_be)) {
    return false;
  }
  const int role = leaf_table().find_leaf("rollout." + leaf.path);
  return role >= 0 && first_reason(role, can_be, "rollout.present") == nullptr;
}

// Whether a role has the leaf from the main deployment, and reads it. What makes samples to train on is another question (above).
bool counts_in_a_role(int number, const CanBe& can_be) {
  if (!can_be.like_main) return false;
  const std::vector<Leaf>& leaves = leaf_table().leaves;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].of_main != number || leaves[i].path.starts_with("rollout.")) continue;
    if (!can_be.like_main(int(i))) continue;
    if (first_reason(int(i), can_be, {}) == nullptr) return true;
  }
  return false;
}

}  // namespace

const LeafUse* why_inert(int number, const CanBe& can_be) {
  const LeafUse* reason = first_reason(number, can_be, {});
  if (reason == nullptr) return nullptr;
  const Leaf& leaf = leaf_table().leaves[std::size_t(number)];
  const bool counts = makes_samples(leaf, can_be) || counts_in_a_role(number, can_be);
  return counts ? nullptr : reason;
}

const ValueUse* why_another(int number, double value, const CanBe& can_be) {
  static const std::vector<ValueUse> uses = value_use_rules();
  const Leaf& leaf = leaf_table().leaves[std::size_t(number)];
  const auto found = std::ranges::find_if(uses, [&](const ValueUse& use) {
    if (use.path != leaf.path || use.value != leaf.names[std::size_t(value)]) return false;
    return std::ranges::none_of(use.any_of, [&](const UseCondition& condition) {
      return can_hold(condition, condition.path, can_be);
    });
  });
  return found == uses.end() ? nullptr : &*found;
}

bool task_reads(Task task, int leaf) {
  static const int task_leaf = leaf_table().find_leaf("task");
  const auto value = [task](int other, const std::function<bool(double)>& predicate) {
    return other != task_leaf || predicate(double(task));
  };
  const auto fact = [](const UseCondition&, int) { return true; };
  return why_inert(leaf, CanBe{value, fact}) == nullptr;
}

const LeafUse* why_inert(int leaf, const Scenario& scenario) {
  const auto value = [&](int other, const std::function<bool(double)>& predicate) {
    const Leaf& entry = leaf_table().leaves[std::size_t(other)];
    return predicate(condition_value(get_leaf(scenario, entry)));
  };
  const auto fact = [&](const UseCondition& condition, int of) {
    return holds_in(scenario, condition, of);
  };
  return why_inert(leaf, CanBe{value, fact});
}

}  // namespace engine

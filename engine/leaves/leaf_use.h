// Which leaves of a scenario count where: step.batch only where the task is step, load.clients only in
// closed loops. A sweep over a leaf that counts nowhere is a slip, and can be said to be one.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/leaves/leaves.h"
#include "engine/scenario.h"

namespace engine {

// Something that must hold of one leaf, or of all leaves of a section.
struct UseCondition {
  enum class Kind : unsigned char {
    named,        // an enumeration with one of these names
    switched_on,  // a boolean that is true
    above,        // a number above this bound
    zero,         // a leaf, or every leaf of a section, that is zero
    set,          // a leaf, or some leaf of a section, that is not zero
    follows,      // a fact that follows from the leaves and sections in `names`
  };
  std::string_view path;
  Kind kind = Kind::named;
  std::vector<std::string_view> names = {};
  double bound = 0;
  // About one deployment of a scenario.
  using Fact = bool (*)(const Scenario&, const Deployment&);
  Fact fact = nullptr;
};

// The leaf or section at `path` counts only where one of the conditions holds; without conditions, nowhere.
// A leaf with several entries counts where each of them allows it; one without any counts everywhere.
struct LeafUse {
  std::string_view path;
  std::string_view where;  // the conditions in words: "task is step"
  std::vector<UseCondition> any_of;
  // Whether the same field of a deployment beside the main one is under the rule, too.
  enum class Of : unsigned char { all, main };
  Of of = Of::all;
};

std::span<const LeafUse> leaf_uses();

// Whether an entry is about a leaf: its path is the leaf's or that of a section around it.
bool concerns(const LeafUse& use, std::string_view leaf_path);

// What can be in some point.
struct CanBe {
  // Whether the leaf of this number can have a value of which the predicate holds. Enumerations are their
  // numbers, booleans 0 or 1, texts 0 where they are empty and 1 elsewhere.
  std::function<bool(int leaf, const std::function<bool(double)>& predicate)> value;
  // Whether a condition that is a fact can hold for the deployment that the leaf of this number belongs to.
  std::function<bool(const UseCondition& condition, int leaf)> fact;
  // Whether the leaf of this number, of a role, may be like that of the main deployment, which then moves it, too. Without this each
  // leaf stands for itself.
  std::function<bool(int leaf)> like_main = {};
};

// The leaves that such a fact follows from, for the deployment of a leaf, and whether it holds in a scenario.
std::vector<int> leaves_behind(const UseCondition& condition, int leaf);
bool holds_in(const Scenario& scenario, const UseCondition& condition, int leaf);

// The first entry that keeps the leaf, and those of roles that may be like it, from counting whatever they can be; or null.
const LeafUse* why_inert(int leaf, const CanBe& can_be);
// The same in one scenario.
const LeafUse* why_inert(int leaf, const Scenario& scenario);

// A value of an enumeration that is another one unless one of the conditions holds: interleaved chunks of a pipeline, with one
// chunk on each stage. A value with several entries is itself where each of them allows it.
struct ValueUse {
  std::string_view path, value;
  std::string_view otherwise;  // the value that it is then
  std::string_view where;      // the conditions in words
  std::vector<UseCondition> any_of;
};

// The entry that makes a value of the leaf of this number another one whatever can be, or null.
const ValueUse* why_another(int leaf, double value, const CanBe& can_be);

// Whether points of a task can depend on a leaf, whatever its other leaves are.
bool task_reads(Task task, int leaf);

// A value as conditions see it.
double condition_value(const LeafValue& value);

}  // namespace engine

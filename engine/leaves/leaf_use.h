// Which leaves of a scenario count where: step.batch only where the task is step, load.clients only in
// closed loops. A sweep over a leaf that counts nowhere is a slip, and can be said to be one. What the conditions are is said
// where a struct lists its fields (engine/base/counts.h).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/counts.h"
#include "engine/leaves/leaves.h"
#include "engine/scenario.h"

namespace engine {

// A condition of a leaf, where it stands: on the leaf's own line or on that of a section around it.
struct LeafUse {
  const Condition* condition = nullptr;
  int leaf = -1;
  int section = -1;      // whose field list has the line; -1: the scenario's
  bool of_main = false;  // it asks the main deployment, whomever the leaf belongs to

  std::string where() const;  // "task is step"
};

// All that must hold where a leaf counts, but for what holds wherever it lies: first what nothing in a sweep can change, and then which
// task it is.
std::vector<LeafUse> uses_of(int leaf);
// Whether it holds nowhere.
bool is_never(const LeafUse& use);

// What can be in some point.
struct CanBe {
  // Whether the leaf of this number can have a value of which the predicate holds. Enumerations are their
  // numbers, booleans 0 or 1, texts 0 where they are empty and 1 elsewhere.
  std::function<bool(int leaf, const std::function<bool(double)>& predicate)> value;
  // Whether a test that is about more than single leaves can hold for the deployment that the leaf of this number belongs to.
  std::function<bool(const Test& test, int leaf)> fact;
  // Whether the leaf of this number, of a role, may be like that of the main deployment, which then moves it, too. Without this each
  // leaf stands for itself.
  std::function<bool(int leaf)> like_main = {};
};

// The leaves that such a test follows from, for the deployment of a leaf, and whether it holds in a scenario.
std::vector<int> leaves_behind(const Test& test, int leaf);
bool holds_in(const Scenario& scenario, const Test& test, int leaf);

// The first condition that keeps the leaf, and those of roles that may be like it, from counting whatever they can be.
std::optional<LeafUse> why_inert(int leaf, const CanBe& can_be);
// The same in one scenario.
std::optional<LeafUse> why_inert(int leaf, const Scenario& scenario);

// Why a value of an enumeration is another one whatever can be: interleaved chunks of a pipeline, with one chunk on each stage.
struct ValueUse {
  std::string_view value;
  std::string_view otherwise;  // what it is then
  LeafUse unless;
};
std::optional<ValueUse> why_another(int leaf, double value, const CanBe& can_be);

// Whether points of a task can depend on a leaf, whatever its other leaves are.
bool task_reads(Task task, int leaf);

// The one task that reads the section of the scenario that a leaf lies in; nothing: others may, too.
std::optional<Task> only_reader(const Leaf& leaf);

// A value as conditions see it.
double condition_value(const LeafValue& value);

}  // namespace engine

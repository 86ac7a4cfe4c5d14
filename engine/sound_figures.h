// Whether the figures of a point can be true: finite, not negative, and those of its task present.
#pragma once

#include <optional>

#include "engine/outcome.h"
#include "engine/tasks/task_table.h"

namespace engine {

// What is wrong with the figures of a point that seems to work, naming the first; or nothing.
std::optional<Refusal> figures_problem(const TaskEntry& task, const Outcome& outcome);

// The point has no figures but the number of its devices.
void fail(Outcome& outcome, Refusal refusal);

}  // namespace engine

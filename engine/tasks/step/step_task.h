// Task `step`: one prefill or decode step.
#pragma once

#include "engine/tasks/report_time.h"
#include "engine/tasks/task_table.h"

namespace engine {

std::optional<Refusal> step_problem(const Scenario& scenario);
MemoryDemand step_demand(const Scenario& scenario, const Resources& resources, Scratch& scratch);
void run_step(const TaskPoint& point, Outcome& outcome);
std::string step_headline(const Scenario& scenario);

constexpr FigureGroup kStepFigures[] = {
    FigureGroup::time,        FigureGroup::rates,   FigureGroup::memory, FigureGroup::price,
    FigureGroup::speculation, FigureGroup::sharing, FigureGroup::array};

constexpr TaskEntry step_task() {
  return {.task = Task::step,
          .figures = kStepFigures,
          .essential = "step_time",
          .essential_value = [](const Metrics& metrics) { return metrics.step_time.value; },
          .roles = {},
          .copies = one_copy,
          .problem = step_problem,
          .demand = step_demand,
          .run = run_step,
          .headline = step_headline};
}

}  // namespace engine

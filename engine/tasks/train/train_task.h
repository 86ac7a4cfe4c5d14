// Task `train`: one optimizer step of a training run, and what the run takes.
#pragma once

#include "engine/tasks/report_time.h"
#include "engine/tasks/task_table.h"
#include "engine/tasks/train/tail_stages.h"

namespace engine {

std::optional<Refusal> train_task_problem(const Scenario& scenario);
void run_train(const TaskPoint& point, Outcome& outcome);
std::string train_headline(const Scenario& scenario);

constexpr FigureGroup kTrainGroups[] = {FigureGroup::time, FigureGroup::rates, FigureGroup::memory,
                                        FigureGroup::price, FigureGroup::training};

constexpr Role Scenario::*kTrainRoles[] = {&Scenario::rollout, &Scenario::tail};

constexpr TaskEntry train_task() {
  return {.task = Task::train,
          .figures = kTrainGroups,
          .essential = "iteration_time",
          .essential_value = [](const Metrics& metrics) { return metrics.iteration_time.value; },
          .roles = kTrainRoles,
          .copies = one_copy,
          .problem = train_task_problem,
          .demand = nullptr,
          .run = run_train,
          .headline = train_headline,
          .devices_beside = train_devices_beside};
}

}  // namespace engine

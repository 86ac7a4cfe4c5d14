// Task `classify`: a batch of images through a convolutional network (model.network).
#pragma once

#include "engine/tasks/report_time.h"
#include "engine/tasks/task_table.h"

namespace engine {

// A network in a deployment or a task that has no use for one, or none where one is needed; and one that cannot be laid out as asked.
std::optional<Refusal> network_problem(const Scenario& scenario);

MemoryDemand classify_demand(const Scenario& scenario, const Resources& resources,
                             Scratch& scratch);
void run_classify(const TaskPoint& point, Outcome& outcome);
std::string classify_headline(const Scenario& scenario);

constexpr FigureGroup kClassifyFigures[] = {FigureGroup::time,   FigureGroup::rates,
                                            FigureGroup::memory, FigureGroup::price,
                                            FigureGroup::images, FigureGroup::array};

constexpr TaskEntry classify_task() {
  return {
      .task = Task::classify,
      .figures = kClassifyFigures,
      .essential = "image_latency",
      .essential_value = [](const Metrics& metrics) { return metrics.image_latency.value; },
      .roles = {},
      .copies = one_copy,
      // What there is to refuse keeps other tasks and deployments from starting, too: network_problem.
      .problem = [](const Scenario&) { return std::optional<Refusal>(); },
      .demand = classify_demand,
      .run = run_classify,
      .headline = classify_headline};
}

}  // namespace engine

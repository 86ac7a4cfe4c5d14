// Task `denoise`: a batch of images by a diffusion transformer, from noise to the last step.
#pragma once

#include "engine/tasks/report_time.h"
#include "engine/tasks/task_table.h"

namespace engine {

std::optional<Refusal> denoise_problem(const Scenario& scenario);
MemoryDemand denoise_demand(const Scenario& scenario, const Resources& resources, Scratch& scratch);
void run_denoise(const TaskPoint& point, Outcome& outcome);
std::string denoise_headline(const Scenario& scenario);

constexpr FigureGroup kDenoiseFigures[] = {FigureGroup::time, FigureGroup::rates,
                                           FigureGroup::memory, FigureGroup::price,
                                           FigureGroup::images};

constexpr TaskEntry denoise_task() {
  return {.task = Task::denoise,
          .figures = kDenoiseFigures,
          .essential = "image_latency",
          .essential_value = [](const Metrics& metrics) { return metrics.image_latency.value; },
          .roles = {},
          .copies = one_copy,
          .problem = denoise_problem,
          .demand = denoise_demand,
          .run = run_denoise,
          .headline = denoise_headline};
}

}  // namespace engine

// Task `serve`: a load of requests over time, and what its operator sees.
#pragma once

#include "engine/tasks/serve/image_encoder.h"
#include "engine/tasks/task_table.h"

namespace engine {

// The load of a replicate: the same for every design and every rate.
std::uint64_t load_seed(const Scenario& scenario);

std::optional<Refusal> serve_problem(const Scenario& scenario);
MemoryDemand serve_demand(const Scenario& scenario, const Resources& resources, Scratch& scratch);
void run_serve(const TaskPoint& point, Outcome& outcome);
std::string serve_headline(const Scenario& scenario);

constexpr FigureGroup kServeFigures[] = {
    FigureGroup::time,    FigureGroup::rates,       FigureGroup::memory, FigureGroup::price,
    FigureGroup::serving, FigureGroup::speculation, FigureGroup::sharing};
constexpr Role Scenario::*kServeRoles[] = {&Scenario::prefill, &Scenario::encode};

constexpr TaskEntry serve_task() {
  return {.task = Task::serve,
          .figures = kServeFigures,
          .essential = "requests_finished",
          .essential_value = [](const Metrics& metrics) { return metrics.requests_finished; },
          .roles = kServeRoles,
          .copies = [](const Deployment& on) { return double(on.serving.replicas); },
          .problem = serve_problem,
          .demand = serve_demand,
          .run = run_serve,
          .headline = serve_headline,
          .devices_beside = devices_beside_served};
}

}  // namespace engine

// Task `request`: identical requests that start together, from the prompt to the last token. Where the scenario
// has a deployment for prompts of its own (`prefill`), their KV cache is carried from there to the main one. Passages may be
// looked up for a prompt first (retrieval.h).
#pragma once

#include "engine/tasks/report_time.h"
#include "engine/tasks/request/retrieval.h"
#include "engine/tasks/task_table.h"

namespace engine {

std::optional<Refusal> request_problem(const Scenario& scenario);
MemoryDemand request_demand(const Scenario& scenario, const Resources& resources, Scratch& scratch);
void run_request(const TaskPoint& point, Outcome& outcome);
std::string request_headline(const Scenario& scenario);

constexpr Role Scenario::*kRequestRoles[] = {&Scenario::prefill, &Scenario::rerank};
constexpr FigureGroup kRequestFigures[] = {FigureGroup::time,        FigureGroup::rates,
                                           FigureGroup::memory,      FigureGroup::price,
                                           FigureGroup::speculation, FigureGroup::retrieval};

constexpr TaskEntry request_task() {
  return {.task = Task::request,
          .figures = kRequestFigures,
          .essential = "e2e",
          .essential_value = [](const Metrics& metrics) { return metrics.e2e.value; },
          .roles = kRequestRoles,
          .copies = one_copy,
          .problem = request_problem,
          .demand = request_demand,
          .run = run_request,
          .headline = request_headline,
          .devices_beside = devices_beside_request};
}

}  // namespace engine

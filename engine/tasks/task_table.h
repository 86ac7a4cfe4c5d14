// What a point can be asked for: a row per task. A task is a folder beside this file, its line in the table, and
// its settings in engine/scenario.h.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/refusal.h"
#include "engine/base/work_meter.h"
#include "engine/deploy.h"
#include "engine/draft.h"
#include "engine/feasibility.h"
#include "engine/neighbours.h"
#include "engine/outcome.h"
#include "engine/resources.h"
#include "engine/scenario.h"
#include "engine/scratch.h"

namespace engine {

// A point whose main deployment is ready.
struct TaskPoint {
  const Scenario& scenario;
  const Resources& resources;
  const Deployed& main;
  const Draft* draft;  // null: nothing is proposed
  WorkMeter& work;
  Scratch& scratch;
  NeighbourEffect beside = {};                 // another model on the same devices,
  DeploymentRole role = DeploymentRole::main;  // whose neighbour it is, or which is its neighbour
  bool compared = false;                       // with how it fares beside that, and nothing else
};

struct TaskEntry {
  Task task;
  std::span<const FigureGroup> figures;
  // The figure without which a point of this task says nothing, and its name.
  std::string_view essential;
  double (*essential_value)(const Metrics& metrics);
  // Deployments that it has beside the main one, where they are present.
  std::span<Role Scenario::*const> roles;
  // Copies of a deployment's layout.
  double (*copies)(const Deployment& deployment);
  // Settings of the task that contradict the model or one another.
  std::optional<Refusal> (*problem)(const Scenario& scenario);
  // Null: the task looks after its memory itself.
  MemoryDemand (*demand)(const Scenario& scenario, const Resources& resources, Scratch& scratch);
  // Where there is a demand, memory has been reported, and the model fits.
  void (*run)(const TaskPoint& point, Outcome& outcome);
  // The task in a line, for `explain`.
  std::string (*headline)(const Scenario& scenario);
  // Devices that a deployment beside the main one adds; null: those of all copies of its layout.
  double (*devices_beside)(const Scenario& scenario, const Deployment& role) = nullptr;
};

std::span<const TaskEntry> task_table();
const TaskEntry& task_entry(Task task);

// Visits every deployment that a point has: visit(deployment, devices).
template <class Visit>
void each_deployment(const Scenario& scenario, Visit&& visit) {
  const TaskEntry& task = task_entry(scenario.task);
  visit(static_cast<const Deployment&>(scenario), devices_of(scenario, task.copies(scenario)));
  for (Role Scenario::*const role : task.roles) {
    const Deployment& deployment = (scenario.*role).deployment;
    if (!(scenario.*role).present) continue;
    const double devices = task.devices_beside != nullptr
                               ? task.devices_beside(scenario, deployment)
                               : devices_of(deployment, task.copies(deployment));
    if (devices > 0) visit(deployment, devices);
  }
  if (drafts_apart(scenario)) {
    const Deployment& draft = scenario.draft.deployment;
    visit(draft, devices_of(draft, task.copies(scenario)));
  }
}

}  // namespace engine

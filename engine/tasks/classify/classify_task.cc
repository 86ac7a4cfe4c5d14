#include "engine/tasks/classify/classify_task.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/kernels/kernel_model.h"
#include "engine/model/network_ops.h"
#include "engine/step/breakdown.h"
#include "engine/step/step_time.h"
#include "engine/tasks/report_images.h"
#include "engine/tasks/request/retrieval.h"

namespace engine {
namespace {

using Problem = std::optional<Refusal>;

// Whether the task has use for a deployment. A neighbour is the main one of a point of its own.
bool used(const Role& role, const Scenario& scenario) {
  if (&role == &scenario.draft) return speculates(scenario);
  if (&role == &scenario.rerank) return reranks(scenario);
  return std::ranges::any_of(task_entry(scenario.task).roles,
                             [&](Role Scenario::*one) { return &(scenario.*one) == &role; });
}

Problem roles_problem(const Scenario& scenario) {
  Problem found;
  each_role(scenario, [&](std::string_view name, const Role& role) {
    if (!role.present || !role.deployment.model.is_network() || !used(role, scenario)) return;
    found = in_role(name, {ReasonClass::unsupported,
                           "its model is a convolutional network (model.network), which only the "
                           "main deployment of task classify runs"});
  });
  return found;
}

Problem layout_problem(const Parallelism& parallel) {
  if (parallel.devices_of_replica() == 1 && parallel.ep == 1) return std::nullopt;
  return Refusal{ReasonClass::unsupported,
                 "a convolutional network that several devices share: state 1 for parallel.tp, "
                 "parallel.pp, parallel.cp and parallel.ep; parallel.dp runs others beside it"};
}

}  // namespace

std::optional<Refusal> network_problem(const Scenario& scenario) {
  const bool network = scenario.model.is_network();
  if (scenario.task != Task::classify) {
    if (!network) return roles_problem(scenario);
    return Refusal{ReasonClass::unsupported,
                   "the model is a convolutional network (model.network), which has no tokens; "
                   "task: classify runs it"};
  }
  if (!network) {
    return Refusal{ReasonClass::unsupported,
                   "task classify runs a convolutional network, and the model has no layers of one "
                   "(model.network)"};
  }
  if (const auto wrong = network_mistake(scenario.model.network)) {
    return Refusal{ReasonClass::unsupported,
                   fmt::format("model.network, layer {}: {}; {}", wrong->phrase + 1, wrong->what,
                               wrong->hint)};
  }
  return layout_problem(scenario.parallel);
}

MemoryDemand classify_demand(const Scenario& scenario, const Resources&, Scratch&) {
  const std::int64_t images = scenario.classify.batch;
  return {.sequences = images, .context = 0, .step_tokens = images, .sampled = 0};
}

// Batches are alike, so a host that captures steps replays this one.
void run_classify(const TaskPoint& point, Outcome& outcome) {
  const Scenario& scenario = point.scenario;
  const StepContext context = point.main.context(point.work);
  const std::vector<NetworkLayer> layers = network_layers(scenario.model.network);
  OpList ops;
  network_ops(layers, scenario.classify.batch, context.shard.dense, ops);
  const LaunchMode mode =
      context.host.mode == HostMode::graph ? LaunchMode::replay : LaunchMode::eager;
  double count = 0;
  for (const NetworkLayer& layer : layers) count += double(layer.times);
  const StepWork work{.layers = count, .sequences = scenario.classify.batch};
  std::vector<KernelRow> rows;
  const StepTime time = ops_time(ops, work, mode, context, Phase::forward, &rows);
  Breakdown kernels;
  for (const KernelRow& row : rows) kernels.add(row);
  outcome.kernels = std::move(kernels).take();
  report_images(scenario, time, scenario.classify.batch, outcome);
  const KernelModel& model = kernel_model(scenario.device);
  if (model.report != nullptr) model.report(ops, scenario.device, outcome.metrics);
}

std::string classify_headline(const Scenario& scenario) {
  return fmt::format("{} image(s) through a convolutional network\n", scenario.classify.batch);
}

}  // namespace engine

#include "engine/tasks/train/tail_stages.h"

#include <fmt/core.h>

#include <string_view>

#include "engine/comm/links_needed.h"
#include "engine/tasks/train/rollout.h"

namespace engine {
namespace {

// Degrees that both groups of stages have in common.
struct Degree {
  std::string_view name;
  std::int64_t Parallelism::*value;
};
constexpr Degree kShared[] = {
    {"dp", &Parallelism::dp}, {"cp", &Parallelism::cp}, {"ep", &Parallelism::ep}};

Refusal refused(std::string why) { return {ReasonClass::divisibility, std::move(why)}; }

}  // namespace

Parallelism layout_of_all_stages(const Scenario& scenario) {
  Parallelism parallel = scenario.parallel;
  if (scenario.tail.present) parallel.pp += scenario.tail.deployment.parallel.pp;
  return parallel;
}

std::optional<Refusal> tail_problem(const Scenario& scenario) {
  if (!scenario.tail.present) return std::nullopt;
  const Deployment& tail = scenario.tail.deployment;
  if (!same_weights(tail.model, scenario.model)) {
    return refused("tail.model differs from model: all stages have layers of one model");
  }
  for (const Degree& degree : kShared) {
    const std::int64_t own = tail.parallel.*degree.value, main = scenario.parallel.*degree.value;
    if (own == main) continue;
    return refused(fmt::format(
        "tail.parallel.{0} {1} differs from parallel.{0} {2}: all stages work on the same batch",
        degree.name, own, main));
  }
  if (scenario.train.rollout.any()) {
    return Refusal{ReasonClass::unsupported,
                   "train.rollout and stages on other devices (tail) are not modelled together"};
  }
  if (is_dual(scenario.train.schedule)) {
    return Refusal{
        ReasonClass::unsupported,
        fmt::format("train.schedule {} has chunks of both ends of the model on one stage, "
                    "so stages on other devices (tail) are not modelled with it",
                    name_of(scenario.train.schedule))};
  }
  if (scenario.train.sequence_parallel && scenario.train.sequence % tail.parallel.tp != 0) {
    return refused(fmt::format("train.sequence {} cannot be split {} ways (tail.parallel.tp)",
                               scenario.train.sequence, tail.parallel.tp));
  }
  const std::int64_t layers = scenario.train.tail_layers;
  if (layers == 0) return std::nullopt;
  if (scenario.train.first_stage_layers > 0 || scenario.train.last_stage_layers > 0) {
    return refused(
        "train.tail_layers spreads layers over its stages evenly; train.first_stage_layers and "
        "train.last_stage_layers do not");
  }
  if (scenario.train.schedule == Schedule::interleaved) {
    return refused(
        "train.tail_layers needs one chunk of layers on each stage, which the interleaved schedule "
        "does not have");
  }
  const std::int64_t rest = scenario.model.layers - layers;
  if (layers >= tail.parallel.pp && rest >= scenario.parallel.pp) return std::nullopt;
  return refused(
      fmt::format("train.tail_layers {} leaves a stage without layers: {} stages share {} layers, "
                  "and {} of the tail share {}",
                  layers, scenario.parallel.pp, rest, tail.parallel.pp, layers));
}

double train_devices_beside(const Scenario& scenario, const Deployment& role) {
  if (&role == &scenario.tail.deployment) return double(role.parallel.devices());
  return rollout_devices(scenario, role);
}

std::optional<Refusal> deploy_tail(const TaskPoint& point, TailStages& tail) {
  const Scenario& scenario = point.scenario;
  tail.deployment = scenario.tail.deployment;
  tail.deployment.model = scenario.model;
  tail.deployment.serving = scenario.serving;
  if (auto problem = deploy(tail.deployment, scenario.calibration, point.resources.calibrations, 1,
                            tail.deployed)) {
    return in_role("tail", std::move(*problem));
  }
  const std::int64_t devices = scenario.parallel.devices() + tail.deployment.parallel.devices();
  if (auto problem = links_problem(TalkingDevices{devices, "all stages together are "},
                                   tail.deployed.fabric)) {
    return in_role("tail", std::move(*problem));
  }
  return std::nullopt;
}

}  // namespace engine

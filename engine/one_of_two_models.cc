#include "engine/one_of_two_models.h"

#include <fmt/core.h>

#include <string>
#include <utility>

#include "engine/draft.h"
#include "engine/hardware/cluster.h"
#include "engine/sharing/shared_device.h"

namespace engine {
namespace {

// A draft lies on the same devices.
void set_device(Scenario& alone, const Device& device) {
  alone.device = device;
  if (alone.draft.present) alone.draft.deployment.device = device;
}

}  // namespace

std::optional<Refusal> neighbour_problem(const Scenario& scenario) {
  const auto unsupported = [](std::string text) {
    return Refusal{ReasonClass::unsupported, std::move(text)};
  };
  if (scenario.task == Task::serve && scenario.neighbour.load.images > 0) {
    return unsupported(
        "images of a neighbour's requests are not modelled: state neighbour.load.images: 0");
  }
  if (scenario.task == Task::serve && scenario.serving.clock.mode == ClockMode::slo) {
    return unsupported(
        "a clock that follows the steps of one of two models on a device is not modelled: state "
        "serving.clock.mode: full");
  }
  if (drafts_apart(scenario)) {
    return unsupported("a draft on other devices than the two models share is not modelled");
  }
  if (auto problem = parts_problem(scenario.device, scenario.sharing.mode)) return problem;
  if (scenario.sharing.swap && scenario.sharing.mode != SharingMode::time_slices) {
    return unsupported(
        fmt::format("sharing.swap needs models that take turns (sharing.mode: time_slices); under "
                    "{} both are in memory",
                    name_of(scenario.sharing.mode)));
  }
  if (scenario.sharing.swap &&
      fabric_of(scenario.cluster, scenario.device).host_link.bandwidth.value <= 0) {
    return Refusal{ReasonClass::links,
                   "sharing.swap needs a link to the host, where weights come from: state "
                   "device.host_link"};
  }
  return std::nullopt;
}

Scenario without_neighbour(const Scenario& scenario) {
  Scenario alone = scenario;
  alone.neighbour = {};
  alone.sharing = {};
  alone.output.intervals = false;
  return alone;
}

Scenario as_neighbour(const Scenario& scenario) {
  const Neighbour& neighbour = scenario.neighbour;
  Scenario alone = without_neighbour(scenario);
  static_cast<Deployment&>(alone) = neighbour.deployment;
  alone.device = scenario.device;
  alone.cluster = scenario.cluster;
  alone.parallel = scenario.parallel;
  alone.serving.replicas = scenario.serving.replicas;
  alone.serving.clock = {};
  alone.speculation = {};
  alone.draft.present = alone.prefill.present = alone.encode.present = false;
  alone.step = neighbour.step;
  alone.load = neighbour.load;
  alone.capacity = {};
  alone.slo = {};
  alone.output = {};
  return alone;
}

void give_part(Scenario& alone, const SharingSettings& sharing, const Share& mine) {
  Device device = part_of(alone.device, mine.share, mine.multiprocessors, sharing.mode);
  if (sharing.mode != SharingMode::mig && !sharing.swap) {
    device.memory_capacity = device.memory_capacity * mine.memory;
  }
  set_device(alone, device);
}

void give_memory(Scenario& alone, Bytes memory) {
  Device device = alone.device;
  device.memory_capacity = memory;
  set_device(alone, device);
}

}  // namespace engine

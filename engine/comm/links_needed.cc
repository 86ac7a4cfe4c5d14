#include "engine/comm/links_needed.h"

#include <algorithm>
#include <array>

namespace engine {
namespace {

// Replicas send nothing to one another unless they share experts.
std::array<TalkingDevices, 2> talking_groups(const Parallelism& parallel) {
  const bool exchange = parallel.ep > parallel.tp;
  return {TalkingDevices{parallel.devices_of_replica(), "one replica needs "},
          TalkingDevices{exchange ? parallel.ep : 1, "the experts lie on "}};
}

bool joins(const LinkRates& link) {
  return link.topology != Topology::none && link.bandwidth.value > 0;
}

}  // namespace

std::optional<Refusal> links_problem(const TalkingDevices& group, const Fabric& fabric) {
  const std::int64_t together = std::min(group.devices, fabric.devices_per_node);
  if (together > 1 && !joins(fabric.inside(double(together)))) {
    return Refusal{ReasonClass::links, "no link joins devices inside a node"};
  }
  if (group.devices > fabric.devices_per_node && !joins(fabric.scale_out)) {
    return Refusal{ReasonClass::links,
                   group.who + std::to_string(group.devices) + " devices; a node has " +
                       std::to_string(fabric.devices_per_node) + " and no link joins nodes"};
  }
  return std::nullopt;
}

std::optional<Refusal> links_problem(const Parallelism& parallel, const Fabric& fabric) {
  for (const TalkingDevices& group : talking_groups(parallel)) {
    if (auto problem = links_problem(group, fabric)) return problem;
  }
  return std::nullopt;
}

}  // namespace engine

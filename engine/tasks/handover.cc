#include "engine/tasks/handover.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "engine/calibration/device_facts.h"
#include "engine/comm/sends.h"
#include "engine/feasibility.h"
#include "engine/memory/footprint.h"
#include "engine/tasks/task_table.h"

namespace engine {
namespace {

// One of the two deployments, and how many devices it has in all.
struct End {
  const Device& device;
  const Fabric& fabric;
  double devices;
};
End end_of(const Deployed& deployed, double devices) {
  return {deployed.spec->device, deployed.fabric, devices};
}

// Deployments of one kind of device and one kind of cluster stand in the same one, whatever it is called. A device of which a sweep
// changes a figure keeps its name and its place; devices without a name are of one kind where they are equal.
bool share_a_cluster(const End& from, const End& to) {
  const bool named = from.device.name == to.device.name && from.device.name != Device{}.name;
  const bool equal = same_kernels(from.device, to.device) &&
                     from.device.memory_capacity == to.device.memory_capacity;
  return from.fabric == to.fabric && (named || equal);
}
bool share_a_node(const End& from, const End& to) {
  return share_a_cluster(from, to) &&
         from.devices + to.devices <= double(from.fabric.devices_per_node);
}

// The link that KV leaves or enters a device over.
SendWay way_at(const HandoverWay& way, const Fabric& fabric) {
  const SendWay inside{fabric.inside(way.from_devices + way.to_devices), Reach::inside_node};
  const Link& stated = way.transfer.link;
  if (stated.bandwidth.value > 0) {
    // It leaves the node, unless it is the one inside. Only its rates count.
    const bool same =
        stated.bandwidth == inside.link.bandwidth && stated.latency == inside.link.latency;
    return same ? inside : SendWay{rates_of(stated)};
  }
  if (share_a_node(end_of(way.from, way.from_devices), end_of(way.to, way.to_devices))) {
    return inside;
  }
  SendWay out{fabric.scale_out};
  // Each device has its share of the node's adapters, whoever else sends.
  if (way.transfer.rails > 0) {
    out.link.bandwidth *= double(way.transfer.rails) / double(fabric.devices_per_node);
  }
  return out;
}

// Devices that split heads keep whole copies of what heads share: latents, or the keys of few KV heads. Each fetches its own, so where more
// of them go on than have read, one sends several. Stages of different length are no copies.
double copies_sent(const HandoverWay& way) {
  const auto kept = [&way](const Deployed& end) {
    const Parallelism& layout = end.shard.parallel;
    return double(layout.tp * layout.pp * layout.cp) * carried_kv(end, way, way.tokens).value;
  };
  return std::max(1.0, std::floor(kept(way.to) / kept(way.from) + 1e-6));
}

std::string_view name_of_role(const Scenario& scenario, const Deployment& on) {
  std::string_view found;
  each_role(scenario, [&](std::string_view name, const Role& role) {
    if (&role.deployment == &on) found = name;
  });
  return found;
}

}  // namespace

bool leaves_a_node(const Scenario& scenario) {
  if (scenario.transfer.link.bandwidth.value > 0) return false;
  const Deployment& reader = scenario.prefill.deployment;
  const auto devices = [&scenario](const Deployment& on) {
    return devices_of(on, task_entry(scenario.task).copies(on));
  };
  const Fabric from = fabric_of(reader.cluster, reader.device);
  const Fabric to = fabric_of(scenario.cluster, scenario.device);
  return !share_a_node({reader.device, from, devices(reader)},
                       {scenario.device, to, devices(scenario)});
}

bool takes_a_fabric(const Scenario& scenario) {
  return scenario.transfer.link.bandwidth.value > 0 || leaves_a_node(scenario);
}

std::optional<Refusal> handover_problem(const Deployment& from, const Deployment& to) {
  ModelSpec renamed = from.model;
  renamed.name = to.model.name;
  renamed.hub = to.model.hub;
  if (!(renamed == to.model)) {
    return Refusal{ReasonClass::unsupported,
                   "prefill.model differs from model: the KV cache of one is of no use to the "
                   "other"};
  }
  if (from.quant.kv != to.quant.kv) {
    return Refusal{ReasonClass::format,
                   fmt::format("prefill.quant.kv is {} and quant.kv {}: a KV cache is carried as "
                               "it is",
                               name_of(from.quant.kv), name_of(to.quant.kv))};
  }
  return std::nullopt;
}

std::optional<Refusal> shared_cluster_problem(const Scenario& scenario, const Fabric& fabric) {
  if (fabric.most_devices == 0) return std::nullopt;
  const Deployment& main = scenario;
  double all = 0, of_main = 0;
  std::string others;
  each_deployment(scenario, [&](const Deployment& on, double devices) {
    if (&on == &main) {
      all += devices;
      of_main = devices;
      return;
    }
    const Fabric there = fabric_of(on.cluster, on.device);
    if (!share_a_cluster({on.device, there, devices}, {main.device, fabric, 0})) return;
    all += devices;
    others += fmt::format("{}{} needs {} devices", others.empty() ? "" : ", ",
                          name_of_role(scenario, on), devices);
  });
  if (others.empty() || all <= double(fabric.most_devices)) return std::nullopt;
  return Refusal{ReasonClass::cluster,
                 fmt::format("{} and the main deployment {}; the cluster that they share has {}",
                             others, of_main, fabric.most_devices)};
}

Bytes carried_kv(const Deployed& end, const HandoverWay& way, double tokens) {
  const Bytes own = kv_bytes(end.shard, tokens);
  return way.with_draft() ? own + kv_bytes(*end.guest.shard, tokens) : own;
}

std::optional<Refusal> carry_of(const HandoverWay& way, Handover& handover) {
  const SendWay from = way_at(way, way.from.fabric), to = way_at(way, way.to.fabric);
  if (!from.possible() || !to.possible()) {
    return Refusal{ReasonClass::links,
                   "no link carries the KV cache from prefill to the main deployment: state "
                   "transfer.link, or device.scale_out or cluster.scale_out of both"};
  }
  const Sends out = sends_over(from, way.from.spec->device, way.from.calibration);
  const Sends in = sends_over(to, way.to.spec->device, way.to.calibration);
  // Windowed layers keep no more than their window, so a token of a long prompt has less.
  const auto per_token = [&way](const Deployed& end, const Sends& sends) {
    const Bytes tokens = carried_kv(end, way, way.tokens) - carried_kv(end, way, 0);
    return tokens.value * sends.line.seconds_per_byte / way.tokens;
  };
  const auto of_state = [&way](const Deployed& end, const Sends& sends) {
    return carried_kv(end, way, 0).value * sends.line.seconds_per_byte;
  };
  const double copies = copies_sent(way);
  const FirstToken first = way.transfer.first_token_of(way.to.spec->serving.remakes_first_token);
  handover.carry = {
      .token = {.sent = copies * per_token(way.from, out), .received = per_token(way.to, in)},
      .state = {.sent = copies * of_state(way.from, out), .received = of_state(way.to, in)},
      .latency = std::max(out.line.start, in.line.start).value,
      .tells_first_token = first != FirstToken::prefill,
      .remakes_first_token = first == FirstToken::remade};
  if (way.transfer.mode == TransferMode::layers) {
    handover.carry.last_share = 1 / double(way.from.spec->model.layers);
  }
  handover.tier = std::min(out.tier, in.tier);
  handover.low = std::min(out.low, in.low);
  handover.high = std::max(out.high, in.high);
  return std::nullopt;
}

Seconds exposed_carry(const Carry& carry, const Carried& carried, Seconds reading) {
  const Carry::Load load = carry.of(carried.tokens);
  const double alone = carried.sequences * std::max(load.sent, load.received);
  // The first layer is there when its share of the prompt has been read.
  const double ahead = reading.value * (1 - carry.last_share);
  const double left = std::max(alone * carry.last_share, alone - ahead);
  return Seconds{carry.latency + (carry.last_share < 1 ? left : alone)};
}

}  // namespace engine

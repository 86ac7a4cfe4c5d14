#include "engine/tasks/handover.h"

#include <fmt/core.h>

#include <algorithm>

#include "engine/calibration/device_facts.h"
#include "engine/comm/send_share.h"
#include "engine/memory/footprint.h"

namespace engine {
namespace {

// Deployments of one kind of device and one kind of cluster stand in the same one, whatever it is called.
bool share_a_cluster(const Deployed& from, const Deployed& to) {
  const Device& one = from.spec->device;
  const Device& other = to.spec->device;
  return from.fabric == to.fabric && same_kernels(one, other) &&
         one.memory_capacity == other.memory_capacity;
}

// The link that KV leaves or enters a device over, at the rate that large sends reach of it.
LinkRates link_of(const HandoverWay& way, const Deployed& end) {
  Fabric fabric = end.fabric;
  const double devices = way.from_devices + way.to_devices;
  const bool stated = way.transfer.link.bandwidth.value > 0;
  const bool one_node =
      !stated && share_a_cluster(way.from, way.to) && devices <= double(fabric.devices_per_node);
  if (stated) {
    fabric.scale_out = rates_of(way.transfer.link);
    fabric.scale_out.topology = Topology::fabric;  // any device there to any device here
  }
  LinkRates link = one_node ? fabric.inside(devices) : fabric.scale_out;
  if (link.bandwidth.value <= 0) return link;
  fabric.pod_nodes = 0;  // adapters; what the fabric takes is transfer.oversubscription
  const SendWay sends = one_node ? SendWay::inside_node : SendWay::between_nodes;
  link.bandwidth =
      link.bandwidth * share_of_sends(sends, fabric, end.spec->device, end.calibration);
  // Each device has its share of the node's adapters, whoever else sends.
  if (!stated && !one_node && way.transfer.rails > 0 && fabric.devices_per_node > 0) {
    link.bandwidth =
        link.bandwidth * (double(way.transfer.rails) / double(fabric.devices_per_node));
  }
  return link;
}

}  // namespace

std::optional<Refusal> handover_problem(const Deployment& from, const Deployment& to) {
  ModelSpec renamed = from.model;
  renamed.name = to.model.name;
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

std::optional<Refusal> cluster_problem(const Deployed& from, double from_devices,
                                       const Deployed& to, double to_devices) {
  const std::int64_t most = to.fabric.most_devices;
  if (most == 0 || !share_a_cluster(from, to) || from_devices + to_devices <= double(most))
    return std::nullopt;
  return Refusal{ReasonClass::cluster,
                 fmt::format("prefill needs {} devices and the main deployment {}; the cluster "
                             "that they share has {}",
                             from_devices, to_devices, most)};
}

Bytes carried_kv(const Deployed& end, const HandoverWay& way, double tokens) {
  const Bytes own = kv_bytes(end.shard, tokens);
  return way.with_draft() ? own + kv_bytes(*end.guest.shard, tokens) : own;
}

std::optional<Refusal> carry_of(const HandoverWay& way, Carry& carry) {
  const LinkRates out = link_of(way, way.from), in = link_of(way, way.to);
  if (out.bandwidth.value <= 0 || in.bandwidth.value <= 0) {
    return Refusal{ReasonClass::links,
                   "no link carries the KV cache from prefill to the main deployment: state "
                   "transfer.link, or device.scale_out or cluster.scale_out of both"};
  }
  // Windowed layers keep no more than their window, so a token of a long prompt has less.
  const auto per_token = [&way](const Deployed& end, const LinkRates& link) {
    const Bytes tokens = carried_kv(end, way, way.tokens) - carried_kv(end, way, 0);
    return (tokens / link.bandwidth).value / way.tokens;
  };
  const auto of_state = [&way](const Deployed& end, const LinkRates& link) {
    return (carried_kv(end, way, 0) / link.bandwidth).value;
  };
  carry = {.token = {.sent = per_token(way.from, out), .received = per_token(way.to, in)},
           .state = {.sent = of_state(way.from, out), .received = of_state(way.to, in)},
           .latency = std::max(out.latency, in.latency).value,
           .tells_first_token = way.transfer.first_token == FirstToken::decode};
  if (way.transfer.mode == TransferMode::layers) {
    carry.last_share = 1 / double(way.from.spec->model.layers);
  }
  return std::nullopt;
}

Seconds exposed_carry(const Carry& carry, const Carried& carried, Seconds reading) {
  const Carry::Load load = carry.of(carried.tokens);
  const double alone = carried.sequences * std::max(load.sent, load.received);
  const double left = std::max(alone * carry.last_share, alone - reading.value);
  return Seconds{carry.latency + (carry.last_share < 1 ? left : alone)};
}

}  // namespace engine

#include "engine/hardware/cluster.h"

#include <algorithm>

namespace engine {
namespace {

// Without access to one another's memory cards write to the host's and read from there, a buffer after the other: half of the time
// each.
constexpr double kThroughHost = 0.5;

// What a device sends over the slots of a host: no more than its own one carries.
LinkRates over_slots(const Link& bus, const Device& device) {
  LinkRates rates = rates_of(bus);
  rates.topology = Topology::fabric;
  if (device.host_link.bandwidth.value > 0) {
    rates.bandwidth = std::min(rates.bandwidth, device.host_link.bandwidth);
  }
  if (!device.peer_access) rates.bandwidth = rates.bandwidth * kThroughHost;
  return rates;
}

}  // namespace

Fabric fabric_of(const Cluster& cluster, const Device& device) {
  // Bridged pairs and devices without a link of their own sit in ordinary servers.
  constexpr std::int64_t server_devices = 8;
  Fabric fabric;
  const Link& inside =
      cluster.scale_up.topology == Topology::none ? device.scale_up : cluster.scale_up;
  fabric.scale_up =
      inside.topology == Topology::bus ? over_slots(inside, device) : rates_of(inside);
  fabric.scale_out =
      rates_of(cluster.scale_out.topology == Topology::none ? device.scale_out : cluster.scale_out);
  fabric.host_link = rates_of(device.host_link);
  fabric.bus = device.host_link.topology == Topology::none ? fabric.host_link
                                                           : over_slots(device.host_link, device);
  if (cluster.devices_per_node > 0) {
    fabric.devices_per_node = cluster.devices_per_node;
  } else if (fabric.scale_up.topology == Topology::pairs ||
             fabric.scale_up.topology == Topology::none) {
    fabric.devices_per_node = server_devices;
  } else {
    fabric.devices_per_node = std::max<std::int64_t>(1, fabric.scale_up.devices);
  }
  fabric.most_devices = cluster.nodes * fabric.devices_per_node;
  // A single pod has no way out.
  const bool several = cluster.nodes == 0 || cluster.nodes > cluster.pod_nodes;
  if (cluster.pod_nodes > 0 && several && cluster.oversubscription > 1) {
    fabric.pod_nodes = cluster.pod_nodes;
    fabric.oversubscription = cluster.oversubscription;
  }
  return fabric;
}

bool has_foreign_links(const Cluster& cluster, const Device& device) {
  const Link& inside = cluster.scale_up;
  return inside.topology != Topology::none && !inside.family.empty() &&
         inside.family != device.scale_up.family;
}

}  // namespace engine

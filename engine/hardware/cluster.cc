#include "engine/hardware/cluster.h"

#include <algorithm>

namespace engine {

Fabric fabric_of(const Cluster& cluster, const Device& device) {
  Fabric fabric;
  fabric.scale_up =
      cluster.scale_up.topology == Topology::none ? device.scale_up : cluster.scale_up;
  fabric.scale_out =
      cluster.scale_out.topology == Topology::none ? device.scale_out : cluster.scale_out;
  fabric.devices_per_node =
      cluster.devices_per_node > 0 ? cluster.devices_per_node
                                   : std::max<std::int64_t>(1, fabric.scale_up.devices);
  fabric.most_devices = cluster.nodes * fabric.devices_per_node;
  return fabric;
}

}  // namespace engine

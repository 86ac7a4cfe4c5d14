// How many devices there are and which link joins two of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/fields.h"
#include "engine/hardware/device.h"
#include "engine/hardware/link.h"

namespace engine {

// A link of a cluster is one where it has a topology, which library entries have; its device's fields are those to change otherwise.
inline constexpr const Condition& with_own_scale_up =
    said<"cluster.scale_up.topology {} (by default links are the device's: device.scale_up)",
         is_none_of<"cluster.scale_up.topology", Topology::none>>;
inline constexpr const Condition& with_own_scale_out =
    said<"cluster.scale_out.topology {} (by default links are the device's: device.scale_out)",
         is_none_of<"cluster.scale_out.topology", Topology::none>>;

// Left at its defaults, a cluster is as many nodes as the parallelism needs, each as large as the
// device's own scale-up link allows. A named cluster or an override takes the links' place.
struct Cluster {
  static constexpr std::string_view library = "clusters";

  std::string name = "auto";
  std::int64_t devices_per_node = 0;
  std::int64_t nodes = 0;
  Link scale_up;
  Link scale_out;
  std::int64_t pod_nodes = 0;
  double oversubscription = 1;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name, "name of the cluster", a_label);
    visit("devices_per_node", self.devices_per_node,
          "devices joined by scale_up; 0: as many as the link joins", non_negative.neither());
    visit("nodes", self.nodes, "nodes at hand; 0: as many as the point needs",
          non_negative.neither());
    visit("scale_up", self.scale_up, "link inside a node; none: the device's own",
          any_value.where(with_own_scale_up));
    visit("scale_out", self.scale_out, "link between nodes; none: the device's own",
          any_value.where(with_own_scale_out));
    visit("pod_nodes", self.pod_nodes,
          "neighbouring nodes that reach one another at the full rate of scale_out; 0: all do",
          non_negative.neither().where(
              said<"the ways out of a pod are thinner than its adapters (cluster.oversubscription)",
                   is_above<"cluster.oversubscription", 1>>));
    visit("oversubscription", self.oversubscription,
          "what the adapters of a pod could send over what the ways out of it carry",
          at_least(1).slower().where(
              said<"there are pods (cluster.pod_nodes)", is_above<"cluster.pod_nodes", 0>>));
  }
};

// The links and node size that hold once cluster and device are put together.
struct Fabric {
  LinkRates scale_up;
  LinkRates scale_out;
  LinkRates host_link;
  LinkRates bus;  // the host link as devices of a node use it between them
  std::int64_t devices_per_node = 1;
  std::int64_t most_devices = 0;  // 0: no limit
  // Nodes of a pod, and how much thinner the ways out of it are than its adapters; 0: all nodes are one.
  std::int64_t pod_nodes = 0;
  double oversubscription = 1;

  // The link that joins a group of `ranks` devices of one node: bridged pairs go through the host
  // beyond two, and so do devices with no link of their own.
  const LinkRates& inside(double ranks) const {
    const bool own =
        scale_up.topology != Topology::none && (scale_up.topology != Topology::pairs || ranks <= 2);
    return own ? scale_up : bus;
  }

  bool operator==(const Fabric&) const = default;
};

Fabric fabric_of(const Cluster& cluster, const Device& device);

// Whether the cluster joins devices of a node by a link that they have no ports for. Adapters to other nodes belong to the node.
bool has_foreign_links(const Cluster& cluster, const Device& device);

}  // namespace engine

#include "engine/comm/collective_time.h"

#include <algorithm>
#include <cmath>

namespace engine {
namespace {

// What a group of devices on one link can use of it.
struct Path {
  double bandwidth;  // bytes a second and direction, per device
  double latency;
  bool any_to_any;
  bool in_network;
};

Path path_of(const LinkRates& link, double ranks) {
  Path path{link.bandwidth.value, link.latency.value, false, false};
  switch (link.topology) {
    case Topology::none:
    case Topology::ring:
    case Topology::pairs:
      break;
    case Topology::fabric:
      path.any_to_any = true;
      path.in_network = link.in_network_reduction;
      break;
    case Topology::mesh: {
      // Each pair has its own links: a smaller group reaches only those to its members.
      const double peers = std::max(1.0, double(link.devices) - 1);
      path.bandwidth *= std::min(1.0, (ranks - 1) / peers);
      path.any_to_any = true;
      break;
    }
  }
  return path;
}

CollectiveTime choose(const CollectiveTime& a, const CollectiveTime& b) {
  return b.total() < a.total() ? b : a;
}

CollectiveTime candidate(Algorithm algorithm, double steps, double sent, const Path& path) {
  return {.latency = Seconds{steps * path.latency},
          .transfer = Seconds{sent / path.bandwidth},
          .bytes = Bytes{sent},
          .algorithm = algorithm};
}

// A collective among `ranks` devices on one kind of link.
CollectiveTime flat_time(Pattern pattern, double bytes, double ranks, const LinkRates& link) {
  const Path path = path_of(link, ranks);
  const double share = (ranks - 1) / ranks * bytes;
  if (pattern == Pattern::send_recv) return candidate(Algorithm::direct, 1, bytes, path);
  if (pattern == Pattern::all_reduce) {
    CollectiveTime best = candidate(Algorithm::ring, 2 * (ranks - 1), 2 * share, path);
    if (path.any_to_any) {
      best = choose(best, candidate(Algorithm::one_shot, 1, (ranks - 1) * bytes, path));
      best = choose(best, candidate(Algorithm::two_shot, 2, 2 * share, path));
    }
    if (path.in_network) {
      // Each device sends its input once to the switch and receives the sum once.
      best = choose(best, candidate(Algorithm::in_network, 2, bytes, path));
    }
    return best;
  }
  // On a ring, an all-to-all message travels a quarter of the ring on average in each direction.
  const double ring_load = pattern == Pattern::all_to_all ? bytes * ranks / 4 : share;
  CollectiveTime best = candidate(Algorithm::ring, ranks - 1, ring_load, path);
  if (path.any_to_any) best = choose(best, candidate(Algorithm::direct, 1, share, path));
  return best;
}

// Across nodes: the part inside a node on its own link, the rest between nodes, where each device
// has its own adapter.
CollectiveTime hierarchical_time(Pattern pattern, double bytes, double per_node, double nodes,
                                 const Fabric& fabric) {
  CollectiveTime time;
  time.algorithm = Algorithm::hierarchical;
  const auto add = [&time](const CollectiveTime& part) {
    time.latency += part.latency;
    time.transfer += part.transfer;
    time.bytes += part.bytes;
  };
  const auto inside = [&](Pattern what, double size) {
    if (per_node > 1) add(flat_time(what, size, per_node, fabric.inside(per_node)));
  };
  switch (pattern) {
    case Pattern::all_reduce:
      inside(Pattern::reduce_scatter, bytes);
      add(flat_time(Pattern::all_reduce, bytes / per_node, nodes, fabric.scale_out));
      inside(Pattern::all_gather, bytes);
      break;
    case Pattern::all_gather:
      add(flat_time(Pattern::all_gather, bytes / per_node, nodes, fabric.scale_out));
      inside(Pattern::all_gather, bytes);
      break;
    case Pattern::reduce_scatter:
      inside(Pattern::reduce_scatter, bytes);
      add(flat_time(Pattern::reduce_scatter, bytes / per_node, nodes, fabric.scale_out));
      break;
    case Pattern::all_to_all:
      // The share for other nodes crosses between nodes, the rest stays.
      inside(Pattern::all_to_all, bytes / nodes);
      add(flat_time(Pattern::all_to_all, bytes, nodes, fabric.scale_out));
      break;
    case Pattern::send_recv:
      add(flat_time(pattern, bytes, 2, fabric.scale_out));
      break;
  }
  return time;
}

}  // namespace

CollectiveTime collective_time(const Collective& op, const Fabric& fabric, Seconds launch) {
  if (op.ranks <= 1) return {};
  const double node = double(fabric.devices_per_node);
  // Ranks `stride` apart that share a node.
  const double per_node = std::clamp(std::floor(node / double(op.stride)), 1.0, double(op.ranks));
  const double nodes = std::ceil(double(op.ranks) / per_node);
  CollectiveTime time = nodes > 1 ? hierarchical_time(op.pattern, op.bytes, per_node, nodes, fabric)
                                  : flat_time(op.pattern, op.bytes, double(op.ranks),
                                              fabric.inside(double(op.ranks)));
  time.latency += launch;
  return time;
}

}  // namespace engine

#include "engine/comm/collective_time.h"

#include <algorithm>
#include <cmath>

#include "engine/comm/collective_form.h"

namespace engine {

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

namespace {

CollectiveTime choose(const CollectiveTime& a, const CollectiveTime& b) {
  return b.total() < a.total() ? b : a;
}

CollectiveTime candidate(Algorithm algorithm, double steps, double sent, const Path& path) {
  return {.latency = Seconds{steps * path.latency},
          .transfer = Seconds{sent / path.bandwidth},
          .bytes = Bytes{sent},
          .algorithm = algorithm};
}

// What a time may be taken from besides the links' datasheets; both null: nothing.
struct Fits {
  const Device* device = nullptr;
  const Calibration* calibration = nullptr;
};

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

// Inside one node, fitted where a fit speaks for such links.
CollectiveTime node_time(Pattern pattern, double bytes, double ranks, const Fabric& fabric,
                         Library library, const Fits& fits) {
  const LinkRates& link = fabric.inside(ranks);
  if (fits.calibration != nullptr) {
    const Path path = path_of(link, ranks);
    if (const auto fitted = fitted_collective(pattern, bytes, ranks, path, library, *fits.device,
                                              *fits.calibration)) {
      return *fitted;
    }
  }
  return flat_time(pattern, bytes, ranks, link);
}

// Across nodes: the part inside a node on its own link, the rest between nodes, where each device
// has its own adapter.
CollectiveTime hierarchical_time(Pattern pattern, double bytes, double per_node, double nodes,
                                 const Fabric& fabric, const Fits& fits) {
  CollectiveTime time;
  time.algorithm = Algorithm::hierarchical;
  const auto add = [&time](const CollectiveTime& part) {
    time.latency += part.latency;
    time.transfer += part.transfer;
    time.bytes += part.bytes;
    time.extrapolated = time.extrapolated || part.extrapolated;
  };
  const auto inside = [&](Pattern what, double size) {
    if (per_node > 1) add(node_time(what, size, per_node, fabric, Library::general, fits));
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

CollectiveTime group_time(const Collective& op, const Fabric& fabric, Seconds launch,
                          const Fits& fits) {
  if (op.ranks <= 1) return {};
  const double node = double(fabric.devices_per_node);
  // Ranks `stride` apart that share a node.
  const double per_node = std::clamp(std::floor(node / double(op.stride)), 1.0, double(op.ranks));
  const double nodes = std::ceil(double(op.ranks) / per_node);
  CollectiveTime time =
      nodes > 1 ? hierarchical_time(op.pattern, op.bytes, per_node, nodes, fabric, fits)
                : node_time(op.pattern, op.bytes, double(op.ranks), fabric, op.library, fits);
  // A fitted time has the kernel in it.
  if (time.tier == Tier::roofline) time.latency += launch;
  return time;
}

}  // namespace

CollectiveTime collective_time(const Collective& op, const Fabric& fabric, Seconds launch) {
  return group_time(op, fabric, launch, {});
}

CollectiveTime collective_time(const Collective& op, const Fabric& fabric, const Device& device,
                               const Calibration* calibration) {
  return group_time(op, fabric, device.launch_latency, {&device, calibration});
}

}  // namespace engine

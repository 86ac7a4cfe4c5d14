#include "engine/comm/collective_time.h"

#include <algorithm>
#include <cmath>

#include "engine/comm/collective_form.h"
#include "engine/comm/pods.h"

namespace engine {

Path path_of(const LinkRates& link, double ranks) {
  Path path{link.bandwidth.value, link.latency.value, false, false};
  switch (link.topology) {
    case Topology::none:
    case Topology::ring:
    case Topology::pairs:
      break;
    case Topology::fabric:
    case Topology::bus:
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

Path path_inside(const Fabric& fabric, double ranks) {
  const LinkRates& link = fabric.inside(ranks);
  Path path = path_of(link, ranks);
  path.bus = &link == &fabric.bus;
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
  if (fits.calibration != nullptr) {
    const Path path = path_inside(fabric, ranks);
    // Engines' own kernels write into one another's memory, for which more than two need direct links.
    const bool through_host = path.bus && ranks > 2;
    if (const auto fitted = fitted_collective(pattern, bytes, ranks, path,
                                              through_host ? Library::general : library,
                                              *fits.device, *fits.calibration)) {
      return *fitted;
    }
  }
  return flat_time(pattern, bytes, ranks, fabric.inside(ranks));
}

void add_part(CollectiveTime& time, const CollectiveTime& part) {
  time.latency += part.latency;
  time.transfer += part.transfer;
  time.bytes += part.bytes;
  time.extrapolated = time.extrapolated || part.extrapolated;
}

// What a collective between nodes does inside each of them.
CollectiveTime inside_time(Pattern pattern, double bytes, const Spread& spread,
                           const Fabric& fabric, const Fits& fits) {
  CollectiveTime time;
  if (spread.per_node == 1) return time;
  const auto add = [&](Pattern what, double size) {
    add_part(time, node_time(what, size, spread.per_node, fabric, Library::general, fits));
  };
  switch (pattern) {
    case Pattern::all_reduce:
      add(Pattern::reduce_scatter, bytes);
      add(Pattern::all_gather, bytes);
      break;
    case Pattern::all_gather:
    case Pattern::reduce_scatter:
      add(pattern, bytes);
      break;
    case Pattern::all_to_all:
      add(pattern, bytes / spread.nodes);  // the rest is for other nodes
      break;
    case Pattern::send_recv:
      break;
  }
  return time;
}

// Across nodes by the datasheets: the part inside a node on its own link, then the rest between nodes,
// where each device has its own adapter.
CollectiveTime hierarchical_time(Pattern pattern, double bytes, const Spread& spread,
                                 const CollectiveTime& inside, const LinkRates& link) {
  CollectiveTime time = inside;
  time.algorithm = Algorithm::hierarchical;
  const bool pair = pattern == Pattern::send_recv;
  // Of an all-to-all the share for other nodes crosses; the others go by shares of the message.
  const double size = pair || pattern == Pattern::all_to_all ? bytes : bytes / spread.per_node;
  add_part(time, flat_time(pattern, size, pair ? 2 : spread.nodes, link));
  return time;
}

// How the ranks of a group lie on the nodes.
Spread spread_of(const Collective& op, const Fabric& fabric) {
  // Ranks `stride` apart that share a node.
  const double fits = std::floor(double(fabric.devices_per_node) / double(op.stride));
  const double per_node =
      op.per_node > 0 ? double(op.per_node) : std::clamp(fits, 1.0, double(op.ranks));
  const double step = double(op.stride) * per_node / double(fabric.devices_per_node);
  return {.nodes = std::ceil(double(op.ranks) / per_node),
          .per_node = per_node,
          .step = std::max(1.0, step)};
}

// Libraries have one ring for gathers and scatters, where a piece passes every device and every node before it is everywhere;
// sums have trees, whose depth is in their fit.
Seconds way_round(const Collective& op, const Spread& spread, const LinkRates& link,
                  const Fabric& fabric) {
  if (op.pattern != Pattern::all_gather && op.pattern != Pattern::reduce_scatter) return {};
  const Seconds inside = spread.per_node > 1 ? fabric.inside(spread.per_node).latency : Seconds{0};
  return link.latency * (spread.nodes - 1) + inside * (spread.nodes * (spread.per_node - 1));
}

// NCCL cuts messages into slices of an eighth of its 4 MiB buffers (NCCL_BUFFSIZE), one a channel at a time; with a channel for
// each adapter a piece has one slice of each.
constexpr double kSlice = 512 * 1024;

InsideNode same_inside(const Collective& op, const Spread& spread, const Fabric& fabric,
                       const Fits& fits) {
  if (spread.per_node == 1) return {};
  const auto time = [&](double bytes) {
    return node_time(op.pattern, bytes, spread.per_node, fabric, Library::general, fits).total();
  };
  return {time(op.bytes), time(kSlice * spread.per_node)};
}

CollectiveTime cluster_time(const Collective& op, const Spread& spread, const Fabric& fabric,
                            const Fits& fits) {
  const CollectiveTime inside = inside_time(op.pattern, op.bytes, spread, fabric, fits);
  const LinkRates link = between_pods(op.pattern, spread, fabric);
  std::optional<CollectiveTime> fitted;
  if (fits.calibration != nullptr) {
    fitted = fitted_between(op.pattern, op.bytes, spread, same_inside(op, spread, fabric, fits),
                            link, *fits.device, *fits.calibration);
  }
  if (!fitted) return hierarchical_time(op.pattern, op.bytes, spread, inside, link);
  const Seconds round = way_round(op, spread, link, fabric) + fitted->bytes / link.bandwidth;
  fitted->latency += std::max(Seconds{0}, round - fitted->total());
  // The way inside the nodes goes on at the same time; on a slow link there it is the longer one.
  fitted->transfer = std::max(fitted->transfer, inside.total() - fitted->latency);
  fitted->extrapolated = fitted->extrapolated || inside.extrapolated;
  return *fitted;
}

CollectiveTime group_time(Collective op, const Fabric& fabric, Seconds launch, const Fits& fits) {
  if (op.ranks <= 1) return {};
  op.bytes *= op.fullest;
  const Spread spread = spread_of(op, fabric);
  CollectiveTime time = spread.nodes > 1 ? cluster_time(op, spread, fabric, fits)
                                         : node_time(op.pattern, op.bytes, double(op.ranks), fabric,
                                                     op.library, fits);
  // A fitted time has the kernel in it.
  if (time.tier == Tier::roofline) time.latency += launch;
  time.bytes = time.bytes / op.fullest;
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

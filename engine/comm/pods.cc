#include "engine/comm/pods.h"

#include <algorithm>

namespace engine {
namespace {

// Of what the nodes of a pod send to other nodes, the share that leaves the pod.
double leaving(Pattern pattern, const Spread& spread, double pod) {
  if (spread.nodes * spread.step <= pod) return 0;
  // Rings, trees and sends go from neighbour to neighbour: those of the last nodes leave.
  if (pattern != Pattern::all_to_all) return std::min(1.0, spread.step / pod);
  const double near = std::max(1.0, pod / spread.step);
  return (spread.nodes - near) / (spread.nodes - 1);
}

}  // namespace

LinkRates between_pods(Pattern pattern, const Spread& spread, const Fabric& fabric) {
  LinkRates link = fabric.scale_out;
  if (fabric.pod_nodes == 0) return link;
  const double asked = fabric.oversubscription * leaving(pattern, spread, double(fabric.pod_nodes));
  link.bandwidth = link.bandwidth / std::max(1.0, asked);
  return link;
}

}  // namespace engine

// Collectives inside a node by the fitted form.
#pragma once

#include <optional>

#include "engine/calibration/calibration.h"
#include "engine/comm/collective_time.h"
#include "engine/hardware/device.h"

namespace engine {

// What a group of devices on one link can use of it.
struct Path {
  double bandwidth;  // bytes a second and direction, per device
  double latency;
  bool any_to_any;
  bool in_network;
  bool bus = false;  // through the host
};
Path path_of(const LinkRates& link, double ranks);
// The same for a group inside one node, over whichever link joins it.
Path path_inside(const Fabric& fabric, double ranks);

// Nothing where no fit speaks for the link: devices that reach one another only through neighbours.
std::optional<CollectiveTime> fitted_collective(Pattern pattern, double bytes, double ranks,
                                                const Path& path, Library library,
                                                const Device& device,
                                                const Calibration& calibration);

CollectiveKind kind_of(Pattern pattern);

// The same between nodes, `per_node` devices in each of `nodes`, each with an adapter to `link`. Where it was measured between
// nodes like these, that speaks; elsewhere it is put together from `inside`, the same within one node, and from sends.
// Patterns without a fit of their own are half an all-reduce where there are no sends, and flagged.
struct Spread {
  double nodes = 1;
  double per_node = 1;
  double step = 1;  // nodes from one of them to the next
};
// How long the same takes inside one node, and how long one of the pieces that libraries cut messages into.
struct InsideNode {
  Seconds whole{0};
  Seconds piece{0};
};
std::optional<CollectiveTime> fitted_between(Pattern pattern, double bytes, const Spread& spread,
                                             const InsideNode& inside, const LinkRates& link,
                                             const Device& device, const Calibration& calibration);

// Takes the labels of a set, and the residual of a swept device, to a time.
void label(CollectiveTime& time, double least_us, const SetFacts& set, const Coordinates& shape);

// The generation a link's parameters are taken from: the device's own for its links, the pooled ones for the bus
// to the host. Not by how fast the link is: a number that crossed a threshold would change the parameters.
ParameterSet link_set(const Device& device, const Path& path);

}  // namespace engine

// What goes from one device to another, one message after the other: KV caches, weights, embeddings of images.
#pragma once

#include "engine/calibration/calibration.h"
#include "engine/comm/collective_time.h"
#include "engine/hardware/cluster.h"
#include "engine/hardware/device.h"

namespace engine {

enum class Reach : std::uint8_t { inside_node, between_nodes };

// A link as the devices at its ends use it.
struct SendWay {
  LinkRates link;
  Reach reach = Reach::between_nodes;

  bool possible() const { return link.bandwidth.value > 0; }
};

// The link over which each of `devices` devices of a cluster sends and receives.
SendWay way_among(const Fabric& fabric, double devices);

struct Sends {
  MessageLine line;
  Tier tier = Tier::roofline;
  // Nine sends in ten take between `low` and `high` times as long.
  double low = 1;
  double high = 1;
};

// Long messages take what sends between two devices were measured to take of such a link; without a fit, all of it. All links
// of a device to others carry its messages, so each is as fast as a pair whose link is that wide.
Sends sends_over(const SendWay& way, const Device& device, const Calibration* calibration);

}  // namespace engine

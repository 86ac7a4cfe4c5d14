#include "engine/comm/sends.h"

#include <algorithm>

namespace engine {
namespace {

// Two devices and nothing but the link between them.
Fabric pair_on(const SendWay& way) {
  LinkRates link = way.link;
  link.devices = 2;
  // However others are joined, and where only rates are stated, it joins its two ends.
  if (link.topology != Topology::bus) link.topology = Topology::fabric;
  Fabric fabric;
  fabric.devices_per_node = way.reach == Reach::inside_node ? 2 : 1;
  if (way.reach == Reach::between_nodes) {
    fabric.scale_out = link;
  } else if (link.topology == Topology::bus) {
    fabric.bus = link;
  } else {
    fabric.scale_up = link;
  }
  return fabric;
}

// A line through two messages as long as those that were measured.
constexpr double kLong = 32e6;

}  // namespace

SendWay way_among(const Fabric& fabric, double devices) {
  if (devices <= double(fabric.devices_per_node))
    return {fabric.inside(devices), Reach::inside_node};
  return {fabric.scale_out, Reach::between_nodes};
}

Sends sends_over(const SendWay& way, const Device& device, const Calibration* calibration) {
  const Fabric fabric = pair_on(way);
  const auto send = [&](double bytes) {
    const Collective op{.pattern = Pattern::send_recv, .bytes = bytes, .ranks = 2};
    CollectiveTime time = collective_time(op, fabric, device, calibration);
    // Adapters and copy engines carry messages: no kernel runs, unless sends were measured with one.
    if (time.tier == Tier::roofline) time.latency -= device.launch_latency;
    return time;
  };
  const CollectiveTime once = send(kLong), twice = send(2 * kLong);
  // Near the crossing of two protocols a fit may gain more on the way than the link has.
  const Seconds added = std::max(twice.transfer - once.transfer + (twice.latency - once.latency),
                                 Bytes{kLong} / way.link.bandwidth);
  // Where the way is long, a fit of short ones may have messages there before they have crossed it.
  const Seconds start = std::max(once.latency + (once.transfer - added), way.link.latency);
  return {.line = {.start = start, .seconds_per_byte = added.value / kLong},
          .tier = twice.tier,
          .low = twice.low,
          .high = twice.high};
}

}  // namespace engine

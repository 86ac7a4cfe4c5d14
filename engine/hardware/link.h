// One kind of connection between devices, as a device sees it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/enum_names.h"
#include "engine/base/fields.h"
#include "engine/base/units.h"

namespace engine {

enum class Topology : std::uint8_t {
  none,    // no such link
  fabric,  // any device to any other at full rate (a switch)
  mesh,    // every pair has its own share of the links
  ring,    // neighbours only (also a torus, seen along one dimension)
  pairs,   // bridges of two devices; beyond the pair, the host link
  bus,  // slots of a host: any device to any other, each at no more than its own link to the host
};

constexpr std::array<std::string_view, 6> enum_names(Topology) {
  return {"none", "fabric", "mesh", "ring", "pairs", "bus"};
}

// A link that KV caches are carried over is asked for its rate and its latency alone, and has a latency where it has a rate.
inline constexpr const Condition& where_links_join =
    said<"something is summed or shared over the link; KV is only carried",
         outside<"transfer.link">>;
inline constexpr const Condition& where_links_carry =
    either<"transfer.link has a bandwidth (else KV caches take the links of the deployments)",
           outside<"transfer.link">, is_above<"transfer.link.bandwidth", 0>>;

struct Link {
  static constexpr std::string_view library = "links";

  std::string name = "none";
  std::string family;
  Topology topology = Topology::none;
  BytesPerSecond bandwidth;
  Seconds latency;
  std::int64_t devices = 1;
  bool in_network_reduction = false;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name, "name of the link", a_label);
    visit("family", self.family,
          "what ports a device needs for it, such as NVLink 4: a cluster's link of another family "
          "than device.scale_up is marked (foreign_links); empty: any device can use it",
          a_label);
    visit("topology", self.topology, "how the link joins its devices",
          any_value.for_links().where(where_links_join));
    visit("bandwidth", self.bandwidth, "bandwidth per device and direction, all lanes together",
          non_negative.faster());
    visit("latency", self.latency, "time of one small message between two devices",
          non_negative.slower().where(where_links_carry));
    // A larger switch keeps more of a group inside; a larger mesh divides its lanes among more pairs.
    visit("devices", self.devices, "most devices that one domain of the link joins",
          at_least(1).neither().for_links().where(where_links_join));
    visit("in_network_reduction", self.in_network_reduction,
          "switches of the link can sum (as NVLink SHARP)",
          any_value.for_links().where(where_links_join));
  }

  bool operator==(const Link&) const = default;
};

// A link without its name: what times depend on, cheap to copy.
struct LinkRates {
  Topology topology = Topology::none;
  BytesPerSecond bandwidth;
  Seconds latency;
  std::int64_t devices = 1;
  bool in_network_reduction = false;

  bool operator==(const LinkRates&) const = default;
};

// Messages over a link, one after the other: what each takes however small it is, and what each byte adds.
struct MessageLine {
  Seconds start;
  double seconds_per_byte = 0;

  Seconds of(Bytes bytes) const { return start + Seconds{bytes.value * seconds_per_byte}; }
};

inline LinkRates rates_of(const Link& link) {
  return {link.topology, link.bandwidth, link.latency, link.devices, link.in_network_reduction};
}

}  // namespace engine

// Where KV caches of prefixes are kept besides the device's memory.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"
#include "engine/base/fields.h"
#include "engine/base/units.h"

namespace engine {

enum class TierWrite : std::uint8_t {
  through,   // everything that can be shared is copied down at once
  eviction,  // only what the device gives up
};
constexpr std::array<std::string_view, 2> enum_names(TierWrite) { return {"through", "eviction"}; }

// What one copy from host memory, or from a peer, brings.
enum class KvPieces : std::uint8_t {
  blocks,    // a block of all layers
  layers,    // keys, or values, of one layer of a block
  gathered,  // all that is asked for: a kernel puts it where it belongs
};
constexpr std::array<std::string_view, 3> enum_names(KvPieces) {
  return {"blocks", "layers", "gathered"};
}

inline constexpr const Condition& with_host_tier =
    said<"there is serving.tiers.host", is_above<"serving.tiers.host", 0>>;
inline constexpr const Condition& with_disk_tier =
    said<"there is serving.tiers.disk", is_above<"serving.tiers.disk", 0>>;
inline constexpr const Condition& with_peer_tier =
    said<"there is serving.tiers.peer", is_above<"serving.tiers.peer", 0>>;
inline constexpr const Condition& with_store_tier =
    said<"there is serving.tiers.store", is_above<"serving.tiers.store", 0>>;
inline constexpr const Condition& with_tier =
    either<"there is a tier", with_host_tier, with_disk_tier, with_peer_tier, with_store_tier>;
inline constexpr const Condition& with_copied_tier =
    either<"there is serving.tiers.host or serving.tiers.peer", with_host_tier, with_peer_tier>;

struct KvTierSettings {
  Bytes host{0};
  BytesPerSecond host_bandwidth{0};
  Bytes disk{0};
  BytesPerSecond disk_bandwidth{6e9};
  Seconds disk_latency{200e-6};
  TierWrite write = TierWrite::through;
  Bytes peer{0};
  BytesPerSecond peer_bandwidth{0};
  Bytes store{0};
  BytesPerSecond store_bandwidth{25e9};
  BytesPerSecond store_link{0};
  Seconds store_latency{500e-6};
  KvPieces pieces = KvPieces::blocks;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("host", self.host, "host memory of a replica for KV caches of prefixes",
          non_negative_or("none"));
    visit("host_bandwidth", self.host_bandwidth,
          "bandwidth of each device from host memory; auto: what copies reach of its link to the "
          "host",
          non_negative_or("auto").where(with_host_tier));
    visit("disk", self.disk, "disk of a replica for KV caches of prefixes",
          non_negative_or("none"));
    visit("disk_bandwidth", self.disk_bandwidth, "bandwidth of a replica from its disk",
          between(1, 1e18).where(with_disk_tier));
    visit("disk_latency", self.disk_latency, "time until the first byte comes from the disk",
          non_negative.where(with_disk_tier));
    visit(
        "write", self.write,
        "what is copied down; through: all that can be shared; eviction: what the device gives up",
        any_value.where(with_tier));
    visit("peer", self.peer,
          "memory of other devices that a replica may use for KV caches of prefixes, asked before "
          "its host's; in a stated cluster no more than the other devices of its nodes have; their "
          "rent is in no price",
          non_negative_or("none"));
    visit("peer_bandwidth", self.peer_bandwidth,
          "bandwidth of each device from its peers; auto: what large sends between two devices "
          "reach of the links inside a node",
          non_negative_or("auto").where(with_peer_tier));
    visit("store", self.store,
          "remote store for KV caches of prefixes that all replicas of the deployment share, asked "
          "last: what one has written others find",
          non_negative_or("none"));
    visit("store_bandwidth", self.store_bandwidth,
          "bandwidth of the store, shared by all loads from it at a time",
          between(1, 1e18).where(with_store_tier));
    visit("store_link", self.store_link,
          "highest rate that one load from the store gets; none: all that the store has",
          non_negative_or("none").where(with_store_tier));
    visit("store_latency", self.store_latency, "time until the first byte comes from the store",
          non_negative.where(with_store_tier));
    visit("pieces", self.pieces,
          "what one copy from host or peer brings, each of which takes some microseconds to start; "
          "blocks: a block of all layers; layers: keys or values of one layer of a block; "
          "gathered: all that is asked for, by a kernel whose multiprocessors are not counted",
          any_value.where(with_copied_tier));
  }
};

}  // namespace engine

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

struct KvTierSettings {
  Bytes host{0};
  BytesPerSecond host_bandwidth{0};
  Bytes disk{0};
  BytesPerSecond disk_bandwidth{6e9};
  Seconds disk_latency{200e-6};
  TierWrite write = TierWrite::through;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("host", self.host, "host memory of a replica for KV caches of prefixes",
          non_negative_or("none"));
    visit("host_bandwidth", self.host_bandwidth,
          "of each device from host memory; auto: its link to the host", non_negative_or("auto"));
    visit("disk", self.disk, "disk or remote store of a replica for KV caches of prefixes",
          non_negative_or("none"));
    visit("disk_bandwidth", self.disk_bandwidth, "of a replica from its disk or remote store",
          between(1, 1e18));
    visit("disk_latency", self.disk_latency, "until the first byte comes from there", non_negative);
    visit(
        "write", self.write,
        "what is copied down; through: all that can be shared; eviction: what the device gives up",
        any_value);
  }
};

}  // namespace engine

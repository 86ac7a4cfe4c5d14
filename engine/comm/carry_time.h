// The time to carry a KV cache from one deployment to another, over the links that leave their nodes.
#pragma once

#include <algorithm>

#include "engine/base/units.h"
#include "engine/hardware/link.h"

namespace engine {

// One side: what each of its devices sends or receives, and the link it does so over.
struct CarryEnd {
  Bytes per_device;
  LinkRates link;
};

// All devices at once, each over its own adapter: the slower side decides.
inline Seconds carry_time(const CarryEnd& from, const CarryEnd& to) {
  return std::max(from.link.latency, to.link.latency) +
         std::max(from.per_device / from.link.bandwidth, to.per_device / to.link.bandwidth);
}

}  // namespace engine

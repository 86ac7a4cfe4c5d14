// Time of collectives: alpha-beta per algorithm over the links of the cluster, the fastest legal
// algorithm taken and named.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/tier.h"
#include "engine/base/units.h"
#include "engine/calibration/calibration.h"
#include "engine/hardware/cluster.h"
#include "engine/model/op.h"

namespace engine {

enum class Algorithm : std::uint8_t {
  none,
  ring,          // neighbours pass shares around
  direct,        // every device sends its share straight to every other
  one_shot,      // every device reads all inputs and sums them itself
  two_shot,      // direct reduce-scatter, then direct all-gather
  in_network,    // the switch sums
  hierarchical,  // inside nodes, across nodes, inside nodes
  low_latency,   // expert exchange that writes straight into the receivers' buffers
};
constexpr std::array<std::string_view, 8> enum_names(Algorithm) {
  return {"none",     "ring",       "direct",       "one_shot",
          "two_shot", "in_network", "hierarchical", "low_latency"};
}

struct CollectiveTime {
  Seconds latency;
  Seconds transfer;
  Bytes bytes;  // what one device sends
  Algorithm algorithm = Algorithm::none;
  Tier tier = Tier::roofline;
  bool extrapolated = false;
  double low = 1;  // nine calls in ten take between `low` and `high` times the total
  double high = 5;

  Seconds total() const { return latency + transfer; }
};

// From the links' datasheets alone. `launch` is the floor of the kernel that runs the collective.
CollectiveTime collective_time(const Collective& op, const Fabric& fabric, Seconds launch);

// With fitted parameters where there are some: inside a node whose devices reach one another directly.
CollectiveTime collective_time(const Collective& op, const Fabric& fabric, const Device& device,
                               const Calibration* calibration);

// Tokens to their experts, or back.
CollectiveTime exchange_time(const ExpertExchange& op, const Fabric& fabric, const Device& device,
                             const Calibration* calibration);

}  // namespace engine

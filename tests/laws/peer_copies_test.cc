// KV that comes from other devices of a node: at the rate of sends between them, which were measured, and never at more than the
// links have.
#include <gtest/gtest.h>

#include "engine/tasks/serve/kv_room.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

constexpr double kTokenBytes = 1e5;

TierSetups tiers_of(const Device& device, const Calibration* calibration,
                    const KvTierSettings& tiers) {
  const Scenario scenario = toys::scenario();
  const Fabric fabric = fabric_of({}, device);
  const ModelShard shard = shard_of(scenario.model, scenario.parallel, scenario.quant);
  const StepContext context{device, fabric, shard, scenario.host, calibration};
  PoolSetup pool{.settings = scenario.serving, .context = context};
  add_tiers(tiers, {.tokens = 1e6, .token_bytes = kTokenBytes, .whole_bytes = kTokenBytes}, pool);
  return pool.tiers;
}

double rate_of(const TierSetups& tiers, TierName name) {
  return kTokenBytes / tiers[std::size_t(name)].seconds_per_token;
}

TEST(PeerCopies, ReachWhatLargeSendsReachOfTheLinks) {
  const KvTierSettings tiers{.peer = Bytes{1e11}};
  for (const Device& device : toys::shipped_devices()) {
    const double link = fabric_of({}, device).scale_up.bandwidth.value;
    const TierSetups measured = tiers_of(device, &toys::transfer(), tiers);
    if (link <= 0) {
      EXPECT_EQ(measured[std::size_t(TierName::peer)].blocks, 0) << device.name;
      continue;
    }
    const double share = rate_of(measured, TierName::peer) / link;
    EXPECT_LE(share, 1 + 1e-12) << device.name;
    EXPECT_GT(share, 0.5) << device.name;
    // NCCL sent 64 MiB between two H100s at 348 of 450 GB/s.
    if (device.name == "h100-sxm") {
      EXPECT_NEAR(share, 0.77, 0.06) << device.name;
    }
    // By the data sheet there is nothing but the link.
    EXPECT_NEAR(rate_of(tiers_of(device, nullptr, tiers), TierName::peer) / link, 1, 1e-9)
        << device.name;
  }
}

TEST(PeerCopies, TakeWhatIsStated) {
  const Device device = toys::shipped("devices", "h100-sxm").device;
  const KvTierSettings tiers{.peer = Bytes{1e11}, .peer_bandwidth = BytesPerSecond{2e11}};
  EXPECT_NEAR(rate_of(tiers_of(device, &toys::transfer(), tiers), TierName::peer), 2e11, 1);
}

}  // namespace
}  // namespace engine

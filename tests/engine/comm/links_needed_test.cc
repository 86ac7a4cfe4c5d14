// Devices that must talk have a link, or the point says that they have none.
#include "engine/comm/links_needed.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/evaluate.h"
#include "tests/support/calibrations.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

const Link kNone{};

std::string problem(const Parallelism& parallel, const Device& device) {
  return links_problem(parallel, fabric_of(Cluster{}, device)).value_or(Refusal{}).text;
}

TEST(LinksNeeded, ExpertsOnSeveralNodesNeedALinkBetweenThem) {
  Device device = toys::gpu();  // eight on a node
  device.scale_out = kNone;
  EXPECT_EQ(problem({.dp = 8, .ep = 8}, device), "");
  EXPECT_EQ(problem({.tp = 8, .dp = 4, .ep = 32}, device),
            "the experts lie on 32 devices; a node has 8 and no link joins nodes");
  EXPECT_EQ(problem({.dp = 16, .ep = 16}, device),
            "the experts lie on 16 devices; a node has 8 and no link joins nodes");
  EXPECT_EQ(problem({.tp = 4, .pp = 4}, device),
            "one replica needs 16 devices; a node has 8 and no link joins nodes");
}

TEST(LinksNeeded, ReplicasThatShareNothingNeedNone) {
  Device device = toys::gpu();
  device.scale_up = device.scale_out = device.host_link = kNone;
  EXPECT_EQ(problem({.dp = 64}, device), "");
  EXPECT_EQ(problem({.tp = 2}, device), "no link joins devices inside a node");
  EXPECT_EQ(problem({.dp = 2, .ep = 2}, device), "no link joins devices inside a node");
}

TEST(LinksNeeded, ALinkWithoutBandwidthOrTopologyIsNone) {
  Device device = toys::gpu();
  const Parallelism wide{.dp = 16, .ep = 16};
  device.scale_out.bandwidth = BytesPerSecond{0};
  EXPECT_NE(problem(wide, device), "");
  device = toys::gpu();
  device.scale_out.topology = Topology::none;
  EXPECT_NE(problem(wide, device), "");
}

// Whatever is missing: a point is infeasible, or its time is finite.
TEST(LinksNeeded, NoPointTakesForever) {
  Resources resources;
  resources.calibrations.by_name["transfer"] = std::make_shared<Calibration>(toys::transfer());
  int refused = 0, worked = 0;
  for (int missing = 0; missing < 8; ++missing) {
    for (const std::int64_t tp : {1, 2, 8, 16}) {
      for (const std::int64_t pp : {1, 2}) {
        for (const std::int64_t dp : {1, 4, 8}) {
          for (const std::int64_t ep : {std::int64_t{1}, tp, tp * dp}) {
            for (const std::int64_t node : {0, 1, 4}) {
              Scenario scenario = toys::scenario();
              scenario.model = toys::mixture();
              scenario.device.memory_capacity = Bytes{1e13};
              scenario.parallel = {.tp = tp, .pp = pp, .dp = dp, .ep = ep};
              scenario.cluster.devices_per_node = node;
              if ((missing & 1) != 0) scenario.device.scale_up = kNone;
              if ((missing & 2) != 0) scenario.device.scale_out = kNone;
              if ((missing & 4) != 0) scenario.device.host_link = kNone;
              for (const TierChoice tier : {TierChoice::roofline, TierChoice::best}) {
                scenario.calibration.tier = tier;
                const Outcome outcome = evaluate(scenario, resources);
                if (outcome.status != Status::ok) {
                  EXPECT_NE(outcome.reason.find("link"), std::string::npos) << outcome.reason;
                  ++refused;
                  continue;
                }
                EXPECT_TRUE(std::isfinite(outcome.metrics.step_time.value))
                    << tp << " " << pp << " " << dp << " " << ep << " " << node << " " << missing;
                ++worked;
              }
            }
          }
        }
      }
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(worked, 100);
}

}  // namespace
}  // namespace engine

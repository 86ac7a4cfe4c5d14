#include "engine/comm/sends.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/evaluate.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

const Calibration* measured(const Device& device) {
  return choose_calibration({}, device, toys::transfer_resources().calibrations).calibration;
}

// Without the kernel that runs it where nothing was measured.
Seconds stage_to_stage(double bytes, const Fabric& fabric, const Device& device) {
  const CollectiveTime time =
      collective_time({.pattern = Pattern::send_recv, .bytes = bytes, .ranks = 2}, fabric, device,
                      measured(device));
  return time.total() - (time.tier == Tier::roofline ? device.launch_latency : Seconds{0});
}

TEST(Sends, WithoutAFitTakeTheWholeLink) {
  const LinkRates link{.topology = Topology::fabric,
                       .bandwidth = BytesPerSecond{50e9},
                       .latency = Seconds{5e-6},
                       .devices = 1024};
  Device device = toys::gpu();
  device.launch_latency = Seconds{2e-6};
  for (const Reach reach : {Reach::inside_node, Reach::between_nodes}) {
    const Sends sends = sends_over({link, reach}, device, nullptr);
    EXPECT_NEAR(sends.line.seconds_per_byte, 1 / 50e9, 1e-20);
    EXPECT_NEAR(sends.line.start.value, 5e-6, 1e-15);
  }
}

// A link of which only rates are stated joins its ends, and a share of a mesh is no slower than a link of that rate.
TEST(Sends, HowOthersAreJoinedDoesNotMatter) {
  const Device device = toys::shipped("devices", "h100-sxm").device;
  LinkRates link{.topology = Topology::fabric,
                 .bandwidth = BytesPerSecond{50e9},
                 .latency = Seconds{5e-6},
                 .devices = 8};
  for (const Reach reach : {Reach::inside_node, Reach::between_nodes}) {
    const Seconds whole = sends_over({link, reach}, device, measured(device)).line.of(Bytes{1e9});
    for (const Topology topology : {Topology::none, Topology::mesh}) {
      link.topology = topology;
      EXPECT_EQ(sends_over({link, reach}, device, measured(device)).line.of(Bytes{1e9}), whole);
    }
    link.topology = Topology::fabric;
  }
}

// Whatever goes from device to device takes as long as what one stage of a pipeline sends to the next.
TEST(Sends, TakeWhatStagesOfAPipelineTake) {
  int fitted = 0;
  for (const Device& device : toys::shipped_devices()) {
    Fabric fabric = fabric_of({}, device);
    if (fabric.scale_out.topology != Topology::fabric) continue;
    fabric.devices_per_node = 1;
    const SendWay way = way_among(fabric, 2);
    const Sends sends = sends_over(way, device, measured(device));
    const double whole = 1 / way.link.bandwidth.value;
    for (const double bytes : {32e6, 64e6}) {
      EXPECT_NEAR(sends.line.of(Bytes{bytes}) / stage_to_stage(bytes, fabric, device), 1, 1e-12)
          << device.name;
    }
    EXPECT_GE(sends.line.seconds_per_byte, whole * (1 - 1e-12)) << device.name;
    EXPECT_LE(sends.low, 1);
    EXPECT_GE(sends.high, 1);
    fitted += sends.line.seconds_per_byte > 1.05 * whole;
  }
  EXPECT_GT(fitted, 20);
}

// KV that is carried between two nodes of H100s is sent.
TEST(Sends, CarryKvCaches) {
  Scenario point = toys::shipped("models", "llama-3.1-8b");
  point.task = Task::request;
  point.device = toys::shipped("devices", "h100-sxm").device;
  point.cluster = toys::shipped("clusters", "dgx-h100-4-nodes").cluster;
  point.parallel.tp = 8;
  point.request = {.batch = 1, .prompt = 20'000, .output = 2};
  point.prefill.present = true;
  fill_roles(point);
  const Outcome outcome = evaluate(point, toys::transfer_resources());
  ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
  const auto row = std::ranges::find(outcome.kernels, OpName::kv_transfer, &KernelRow::op);
  ASSERT_NE(row, outcome.kernels.end());
  const Fabric fabric = fabric_of(point.cluster, point.device);
  const Sends sends = sends_over(way_among(fabric, 16), point.device, measured(point.device));
  EXPECT_NEAR(row->work.time / sends.line.of(row->work.bytes), 1, 1e-12);
  EXPECT_GT(row->work.time, row->work.bytes / fabric.scale_out.bandwidth * 1.2);
  EXPECT_EQ(row->tier, Tier::transfer);
  EXPECT_NEAR(row->work.low / row->work.time, sends.low, 1e-12);
  EXPECT_NEAR(row->work.high / row->work.time, sends.high, 1e-12);
}

}  // namespace
}  // namespace engine

// Every number of a device, a link, a cluster and a host says what raising it does to the time of a step or a
// request: here every device that ships is held to it, at the roofline and with fitted kernels.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "engine/evaluate.h"
#include "engine/leaves/leaves.h"
#include "tests/support/serving_toys.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

bool is_number(const Leaf& leaf) {
  return leaf.kind == LeafKind::quantity || leaf.kind == LeafKind::number ||
         leaf.kind == LeafKind::integer;
}
bool in(const Leaf& leaf, std::string_view section) { return leaf.path.starts_with(section); }

std::vector<Leaf> directed_leaves(std::string_view section) {
  std::vector<Leaf> found;
  for (const Leaf& leaf : leaf_table().leaves) {
    const bool directed =
        leaf.range.raising == Raising::never_slower || leaf.range.raising == Raising::never_faster;
    if (in(leaf, section) && directed) found.push_back(leaf);
  }
  return found;
}

TEST(DirectionLaws, EveryNumberOfTheHardwareAndTheHostSaysItsDirection) {
  for (const Leaf& leaf : leaf_table().leaves) {
    const bool physical = in(leaf, "device.") || in(leaf, "cluster.") || in(leaf, "host.");
    if (physical && is_number(leaf)) {
      EXPECT_NE(leaf.range.raising, Raising::unstated) << leaf.path;
    }
  }
}

// What is timed: prompts, decodes of few and of many, a whole request; dense, latent and expert models; one device
// and several.
std::vector<Scenario> tasks(const Device& device) {
  Scenario base = toys::scenario();
  base.device = device;
  base.device.memory_capacity = Bytes{1e13};
  if (device.peak.bf16.value <= 0) base.quant.weights = base.quant.activations = Dtype::fp16;
  base.calibration.tier = TierChoice::transfer;
  std::vector<Scenario> all;
  const auto add = [&](auto change) {
    all.push_back(base);
    change(all.back());
  };
  add([](Scenario& s) { s.step = {.batch = 1, .context = 300}; });
  add([](Scenario& s) { s.step = {.batch = 48, .context = 4000}, s.host = HostSettings{}; });
  add([](Scenario& s) {
    s.step = {.phase = StepPhase::prefill, .batch = 2, .prompt = 1500};
    s.parallel.tp = 4;
  });
  add([](Scenario& s) {
    s.model = toys::mixture();
    s.step = {.batch = 64, .context = 1000};
    s.parallel.tp = 2;
  });
  add([](Scenario& s) {
    s.model = toys::latent();
    s.step = {.batch = 16, .context = 2000};
    s.parallel.tp = 8;
  });
  if (device.peak.fp8.value > 0) {
    add([](Scenario& s) {
      s.quant = {.weights = Dtype::fp8, .activations = Dtype::fp8, .kv = Dtype::fp8};
      s.step = {.batch = 200, .context = 700};
    });
    add([](Scenario& s) {
      s.quant = {.weights = Dtype::fp8, .activations = Dtype::fp8, .kv = Dtype::fp8};
      s.step = {.phase = StepPhase::prefill, .batch = 1, .prompt = 16000};
    });
  }
  add([](Scenario& s) {
    s.task = Task::request;
    s.request.prompt = 700;
    s.request.output = 3;
    s.parallel.tp = 2;
  });
  return all;
}

double time_of(const Scenario& scenario) {
  const Outcome outcome = evaluate(scenario, toys::transfer_resources());
  // A cluster of one link may not be able to run a group at all: then there is nothing to compare.
  if (outcome.status != Status::ok) return std::nan("");
  return scenario.task == Task::step ? outcome.metrics.step_time.value : outcome.metrics.e2e.value;
}

void set_number(Scenario& scenario, const Leaf& leaf, double value) {
  if (leaf.kind == LeafKind::integer) {
    set_leaf(scenario, leaf, std::int64_t(std::llround(value)));
  } else {
    set_leaf(scenario, leaf, value);
  }
}

// Times along a ladder of values of one field go the way it says.
void expect_direction(Scenario scenario, const Leaf& leaf, const std::vector<double>& values) {
  double before = std::nan("");
  for (const double value : values) {
    if (leaf.kind == LeafKind::integer && value < 1) continue;
    set_number(scenario, leaf, value);
    const double time = time_of(scenario);
    if (leaf.range.raising == Raising::never_slower) {
      EXPECT_FALSE(time > before * (1 + 1e-9))
          << leaf.path << " raised to " << value << " on " << scenario.device.name << ": " << before
          << " -> " << time;
    } else {
      EXPECT_FALSE(time < before * (1 - 1e-9))
          << leaf.path << " raised to " << value << " on " << scenario.device.name << ": " << before
          << " -> " << time;
    }
    before = time;
  }
}

// From an eighth to eight times what a device has, and to either side of twice, where two formats may have one peak; nothing is
// said of a zero, which means "not known" or "has none".
std::vector<double> around(double value) {
  if (!(value > 0)) return {};
  std::vector<double> values;
  for (const double factor :
       {0.125, 0.3, 0.6, 0.85, 0.99, 1.0, 1.01, 1.2, 1.7, 1.99, 2.01, 3.0, 8.0}) {
    values.push_back(factor * value);
  }
  return values;
}

// Nobody builds units that are faster in 16 bits than in 8. Of such a device kernels for 8 bits would compute in 16, whose operands take
// twice the way through the chip.
std::vector<double> buildable(const Leaf& leaf, const Scenario& scenario) {
  const Device& device = scenario.device;
  std::vector<double> values = around(leaf_as_double(scenario, leaf));
  const bool sixteen_bits = leaf.path == "device.peak.bf16" || leaf.path == "device.peak.fp16";
  if (sixteen_bits && device.peak.fp8.value > 0) {
    std::erase_if(values, [&](double value) { return value > device.peak.fp8.value; });
  }
  return values;
}

class DirectionsAt : public testing::TestWithParam<TierChoice> {};

TEST_P(DirectionsAt, HoldForEveryDevice) {
  const std::vector<Leaf> leaves = directed_leaves("device.");
  for (const Device& device : toys::shipped_devices()) {
    for (Scenario& scenario : tasks(device)) {
      scenario.calibration.tier = GetParam();
      for (const Leaf& leaf : leaves) {
        expect_direction(scenario, leaf, buildable(leaf, scenario));
      }
    }
  }
}

TEST_P(DirectionsAt, HoldForClustersAndHosts) {
  const Device device = toys::shipped("devices", "h100-sxm").device;
  std::vector<Leaf> leaves = directed_leaves("host.");
  for (const Leaf& leaf : directed_leaves("cluster.")) leaves.push_back(leaf);
  for (Scenario& scenario : tasks(device)) {
    scenario.calibration.tier = GetParam();
    scenario.cluster = toys::shipped("clusters", "dgx-h100-4-nodes").cluster;
    scenario.cluster.devices_per_node = 2;  // groups of four cross nodes
    scenario.host = HostSettings{};
    for (const Leaf& leaf : leaves) {
      expect_direction(scenario, leaf, around(leaf_as_double(scenario, leaf)));
    }
  }
}

// Links from a bus's rate to a switch's, in small steps: no rate at which other parameters take over.
TEST_P(DirectionsAt, LinksHaveNoThreshold) {
  const Leaf& leaf =
      leaf_table().leaves[std::size_t(leaf_table().find_leaf("device.scale_up.bandwidth"))];
  std::vector<double> rates;
  for (double rate = 10e9; rate < 2e12; rate *= 1.02) rates.push_back(rate);
  for (const char* name : {"b200-sxm", "h100-sxm", "a100-80gb-sxm", "mi300x", "l40s"}) {
    for (Scenario& scenario : tasks(toys::shipped("devices", name).device)) {
      scenario.calibration.tier = GetParam();
      if (scenario.parallel.tp > 1) expect_direction(scenario, leaf, rates);
    }
  }
}

TEST_P(DirectionsAt, ScratchMemoryHasNoThreshold) {
  const Leaf& leaf =
      leaf_table().leaves[std::size_t(leaf_table().find_leaf("device.shared_memory"))];
  std::vector<double> sizes;
  for (double kib = 16; kib <= 512; kib += 4) sizes.push_back(kib * 1024);
  for (const char* name : {"a100-80gb-sxm", "rtx-a6000", "l40s", "h100-sxm"}) {
    for (Scenario& scenario : tasks(toys::shipped("devices", name).device)) {
      scenario.calibration.tier = GetParam();
      expect_direction(scenario, leaf, sizes);
    }
  }
}

// Served loads follow, but for what schedulers make of it: a faster step may end just before an arrival that a slower
// one would have taken in.
TEST_P(DirectionsAt, ServingFollowsButForItsScheduler) {
  constexpr double kAnomaly = 0.05;
  std::vector<Leaf> leaves = directed_leaves("device.");
  for (const Leaf& leaf : directed_leaves("host.")) leaves.push_back(leaf);
  for (const char* name : {"h100-sxm", "a100-80gb-sxm", "mi300x", "rtx-4090"}) {
    Scenario scenario = toys::served(policy_named("vllm_v1"));
    scenario.device = toys::shipped("devices", name).device;
    scenario.host = toys::shipped("hosts", "vllm-v1").host;
    scenario.calibration.tier = GetParam();
    scenario.parallel.tp = 2;
    scenario.load.arrivals = ArrivalKind::poisson;
    scenario.load.rate = RequestsPerSecond{20};
    scenario.load.requests = 60;
    scenario.load.measure = MeasureKind::whole;  // the same requests whatever the design
    scenario.load.lengths.prompt = 300;
    scenario.load.lengths.output = 40;
    scenario.output.requests = false;
    const auto mean_time = [](const Scenario& point) {
      const Outcome outcome = evaluate(point, toys::transfer_resources());
      EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
      return outcome.metrics.e2e.value;
    };
    const double before = mean_time(scenario);
    for (const Leaf& leaf : leaves) {
      const double value = leaf_as_double(scenario, leaf);
      if (!(value > 0)) continue;
      Scenario raised = scenario;
      set_number(raised, leaf, 2 * value);
      const double after = mean_time(raised);
      if (leaf.range.raising == Raising::never_slower) {
        EXPECT_LE(after, before * (1 + kAnomaly)) << name << " " << leaf.path;
      } else {
        EXPECT_GE(after, before * (1 - kAnomaly)) << name << " " << leaf.path;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DirectionLaws, DirectionsAt,
                         testing::Values(TierChoice::roofline, TierChoice::transfer),
                         [](const auto& tier) { return std::string(name_of(tier.param)); });

}  // namespace
}  // namespace engine

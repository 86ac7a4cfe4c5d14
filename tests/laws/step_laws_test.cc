// Laws of physics that hold for every device, model and shape: drawn at random, checked pairwise.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/base/random.h"
#include "engine/evaluate.h"
#include "tests/support/calibrations.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

// A random scenario of any kind that fits; the draw depends on `n` alone.
Scenario random_scenario(std::uint64_t n) {
  std::uint32_t lane = 0;
  const auto draw = [&](double low, double high) {
    return low * std::pow(high / low, uniform(7, Stream::sampling, n, lane++));
  };
  const auto pick = [&](auto... options) {
    const std::array all{options...};
    return all[std::size_t(uniform(7, Stream::sampling, n, lane++) * double(all.size()))];
  };
  Scenario scenario = toys::scenario();
  scenario.model = pick(0, 1, 2) == 0 ? toys::model()
                   : pick(0, 1) == 0  ? toys::mixture()
                                      : toys::latent();
  scenario.model.window = pick(0, 512);
  scenario.model.full_attention_every = 2;
  scenario.device.memory_bandwidth = BytesPerSecond{draw(1e11, 1e13)};
  scenario.device.l2_bandwidth = BytesPerSecond{draw(1e12, 3e13)};
  scenario.device.l2_capacity = Bytes{draw(1e6, 3e8)};
  scenario.device.multiprocessors = std::int64_t(draw(8, 300));
  scenario.device.clock = Hertz{draw(5e8, 3e9)};
  scenario.device.memory_capacity = Bytes{1e13};
  scenario.device.shared_memory = Bytes{164.0 * 1024};
  scenario.device.architecture = pick("Ampere", "Hopper", "Blackwell", "Ada", "");
  scenario.device.scale_up.topology = pick(Topology::fabric, Topology::mesh, Topology::ring);
  scenario.parallel.tp = pick(1, 2, 4, 8);
  scenario.quant.weights = pick(Dtype::bf16, Dtype::fp8, Dtype::int8, Dtype::int4);
  scenario.quant.kv = pick(Dtype::bf16, Dtype::fp8);
  scenario.host = pick(0, 1) == 0 ? toys::no_host() : HostSettings{};
  scenario.step = {.phase = pick(StepPhase::prefill, StepPhase::decode),
                   .batch = std::int64_t(draw(1, 512)),
                   .context = std::int64_t(draw(1, 65536)),
                   .prompt = std::int64_t(draw(1, 8192)),
                   .cached = std::int64_t(draw(1, 8192))};
  return scenario;
}

const Resources& resources() {
  static const Resources shared = [] {
    Resources loaded;
    loaded.calibrations.by_name["transfer"] = std::make_shared<Calibration>(toys::transfer());
    return loaded;
  }();
  return shared;
}

double time_of(const Scenario& scenario) {
  const Outcome outcome = evaluate(scenario, resources());
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome.metrics.step_time.value;
}

constexpr std::uint64_t kDraws = 2000;

// `change` must not make any step slower.
template <class Change>
void never_slower(Change change) {
  for (std::uint64_t n = 0; n < kDraws; ++n) {
    Scenario before = random_scenario(n);
    for (const TierChoice tier : {TierChoice::roofline, TierChoice::transfer}) {
      before.calibration.tier = tier;
      Scenario after = before;
      change(after);
      EXPECT_LE(time_of(after), time_of(before) * (1 + 1e-12))
          << "draw " << n << " " << name_of(tier);
    }
  }
}

TEST(StepLaws, MoreMemoryBandwidthIsNeverSlower) {
  never_slower([](Scenario& s) { s.device.memory_bandwidth *= 1.5; });
}
TEST(StepLaws, MoreCacheIsNeverSlower) {
  never_slower([](Scenario& s) { s.device.l2_capacity *= 1.5; });
  never_slower([](Scenario& s) { s.device.l2_bandwidth *= 1.5; });
}
TEST(StepLaws, AFasterClockIsNeverSlower) {
  never_slower([](Scenario& s) { s.device.clock *= 1.3; });
}
TEST(StepLaws, ALowerFloorIsNeverSlower) {
  never_slower([](Scenario& s) { s.device.launch_latency *= 0.5; });
}
TEST(StepLaws, AFasterLinkIsNeverSlower) {
  never_slower([](Scenario& s) { s.device.scale_up.bandwidth *= 2; });
  never_slower([](Scenario& s) { s.device.scale_up.latency *= 0.5; });
}
TEST(StepLaws, AFasterHostIsNeverSlower) {
  never_slower([](Scenario& s) { s.host.launch_cost *= 0.5; });
  never_slower([](Scenario& s) { s.host.step_overhead *= 0.5; });
}
TEST(StepLaws, FewerSequencesAreNeverSlower) {
  never_slower([](Scenario& s) { s.step.batch = (s.step.batch + 1) / 2; });
}
TEST(StepLaws, AShorterContextIsNeverSlower) {
  never_slower([](Scenario& s) { s.step.context = (s.step.context + 1) / 2; });
}
TEST(StepLaws, AShorterPromptIsNeverSlower) {
  never_slower([](Scenario& s) { s.step.prompt = s.step.prompt > 1 ? s.step.prompt - 1 : 1; });
  never_slower([](Scenario& s) { s.step.cached /= 2; });
}
TEST(StepLaws, FewerLayersAreNeverSlower) {
  never_slower([](Scenario& s) { s.model.layers = 8; });
}

TEST(StepLaws, NoStepBeatsItsRoofline) {
  for (std::uint64_t n = 0; n < kDraws; ++n) {
    const Scenario scenario = random_scenario(n);
    const Outcome outcome = evaluate(scenario, resources());
    EXPECT_LE(outcome.metrics.model_flops_utilization, 1) << "draw " << n;
    for (const KernelRow& row : outcome.kernels) {
      EXPECT_TRUE(std::isfinite(row.work.time.value)) << "draw " << n;
      EXPECT_GE(row.work.time.value, 0) << "draw " << n;
      if (row.bound == Bound::network || row.bound == Bound::host) continue;
      const FlopsPerSecond peak = std::max(matrix_peak(scenario.device, Dtype::fp8),
                                           matrix_peak(scenario.device, Dtype::bf16));
      EXPECT_LE(row.work.flops / row.work.time, peak * (1 + 1e-9)) << "draw " << n;
      const double fastest =
          std::max(scenario.device.memory_bandwidth.value,
                   scenario.device.l2_bandwidth.value * scenario.device.on_chip_scale());
      EXPECT_LE((row.work.bytes / row.work.time).value, fastest * (1 + 1e-9)) << "draw " << n;
    }
  }
}

TEST(StepLaws, OneDeviceHasNoCommunication) {
  for (std::uint64_t n = 0; n < 200; ++n) {
    Scenario scenario = random_scenario(n);
    scenario.parallel.tp = 1;
    EXPECT_EQ(evaluate(scenario).metrics.communication_time.value, 0);
  }
}

}  // namespace
}  // namespace engine

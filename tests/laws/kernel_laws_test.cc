// Laws of physics for every kernel family, at every tier, over random shapes and devices.
//
// Where a form is not monotone by nature the law says so: a prompt of given context takes whole waves of
// tiles, so query tokens are added behind a fixed prefix; more experts may be fewer tiles, so experts
// are not varied. The measured tier has laws of its own: measured_laws_test.cc.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>

#include "engine/comm/collective_time.h"
#include "engine/evaluate.h"
#include "engine/kernels/kernel_time.h"
#include "engine/model/batch_shape.h"
#include "tests/support/calibrations.h"
#include "tests/support/random_calls.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

// A device of one's own that says what it reads and multiplies and no more is timed by that: fitted kernels would spread work over
// multiprocessors, of which nobody knows how many there are. Stating any number later changes no peak.
TEST(UnknownMultiprocessors, LeaveTheRoofline) {
  Scenario scenario = toys::scenario();
  scenario.host = toys::no_host();
  scenario.host.kernel_gap = Seconds{0};
  Device device;
  device.name = "own";
  device.peak.bf16 = FlopsPerSecond{1e15};
  device.memory_bandwidth = BytesPerSecond{4e12};
  device.memory_capacity = Bytes{100e9};
  device.launch_latency = Seconds{0};
  device.complete();
  scenario.device = device;
  scenario.step = {.phase = StepPhase::decode, .batch = 4, .context = 100};
  const Outcome decode = evaluate(scenario, toys::transfer_resources());
  ASSERT_EQ(decode.status, Status::ok) << decode.reason;
  EXPECT_EQ(decode.tier, Tier::roofline);
  const double read = decode.metrics.weights.value / 4e12;
  EXPECT_GE(decode.metrics.step_time.value, 0.9 * read);
  EXPECT_LE(decode.metrics.step_time.value, 1.2 * read);
  scenario.step = {.phase = StepPhase::prefill, .batch = 8, .prompt = 1024};
  const Metrics prefill = evaluate(scenario, toys::transfer_resources()).metrics;
  EXPECT_GT(prefill.model_flops_utilization, 0.5);
  EXPECT_LE(prefill.model_flops_utilization, 1);
  for (const std::int64_t multiprocessors : {1, 8, 132}) {
    device.multiprocessors = multiprocessors;
    EXPECT_EQ(matrix_peak(device, Dtype::bf16).value, 1e15);
  }
}

using toys::Call;
using toys::Draw;
using toys::Growth;
using toys::growths;
using toys::Prompt;
using toys::random_call;
using toys::random_device;
using toys::random_prompt;

constexpr std::uint64_t kDraws = 3000;

const Calibration* tier_of(int which) { return which == 0 ? nullptr : &toys::transfer(); }

double seconds(const Call& call, const Device& device, const Calibration* calibration) {
  return kernel_time(call.family, call.op, device, calibration).total().value;
}

std::string name(const Call& call, std::uint64_t n, int tier) {
  return std::string(name_of(call.family)) + " draw " + std::to_string(n) + " tier " +
         std::to_string(tier);
}

TEST(KernelLaws, NoCallBeatsThePhysicsOfItsLevel) {
  for (std::uint64_t n = 0; n < kDraws; ++n) {
    const Device device = random_device(n);
    for (int tier = 0; tier < 2; ++tier) {
      Draw draw(n + 77);
      const Family prompts = draw.pick(Family::attn_prefill, Family::mla_prefill);
      for (const Call& call : {random_call(n), Call{prompts, random_prompt(draw, prompts).op()}}) {
        const KernelTime time = kernel_time(call.family, call.op, device, tier_of(tier));
        EXPECT_TRUE(std::isfinite(time.total().value)) << name(call, n, tier);
        EXPECT_GE(time.total().value, time.least.value * (1 - 1e-12)) << name(call, n, tier);
        EXPECT_GT(time.total().value, 0) << name(call, n, tier);
        for (const Seconds part : {time.compute, time.memory, time.l2, time.launch}) {
          EXPECT_GE(part.value, 0) << name(call, n, tier);
          EXPECT_LE(part.value, time.total().value * (1 + 1e-9)) << name(call, n, tier);
        }
        EXPECT_LE(time.low, 1) << name(call, n, tier);
        EXPECT_GE(time.high, 1) << name(call, n, tier);
      }
    }
  }
}

TEST(KernelLaws, MoreWorkIsNeverFaster) {
  for (std::uint64_t n = 0; n < kDraws; ++n) {
    const Device device = random_device(n);
    const Call call = random_call(n);
    Draw draw(n + 55);
    for (int tier = 0; tier < 2; ++tier) {
      const double before = seconds(call, device, tier_of(tier));
      const std::vector<Growth> ways = growths(call.op);
      for (std::size_t way = 0; way < ways.size(); ++way) {
        const double by = draw.pick(1.0001, 1.03, 1.3, 2.0);
        const double after = seconds({call.family, ways[way](call.op, by)}, device, tier_of(tier));
        EXPECT_GE(after, before * (1 - 1e-9)) << name(call, n, tier) << " way " << way << " " << by;
      }
    }
  }
}

TEST(KernelLaws, DoingMoreInsideACallIsNeverFaster) {
  const auto with = [](Op op, bool more_inside) {
    if (auto* gemm = std::get_if<Gemm>(&op)) gemm->quantizes_input = more_inside;
    if (auto* decode = std::get_if<AttentionDecode>(&op)) decode->stores_kv = more_inside;
    if (auto* prompt = std::get_if<AttentionPrefill>(&op)) prompt->stores_kv = more_inside;
    return op;
  };
  for (std::uint64_t n = 0; n < kDraws; ++n) {
    const Device device = random_device(n);
    Draw draw(n + 66);
    for (Call call : {random_call(n),
                      Call{Family::attn_prefill, random_prompt(draw, Family::attn_prefill).op()}}) {
      const Call more{call.family, with(call.op, true)}, less{call.family, with(call.op, false)};
      EXPECT_GE(seconds(more, device, tier_of(1)), seconds(less, device, tier_of(1)))
          << name(call, n, 1);
    }
  }
}

TEST(KernelLaws, LongerPromptsAreNeverFaster) {
  for (std::uint64_t n = 0; n < kDraws; ++n) {
    const Device device = random_device(n);
    Draw draw(n + 99);
    const Family family = draw.pick(Family::attn_prefill, Family::mla_prefill);
    const Prompt prompt = random_prompt(draw, family);
    Prompt query = prompt, cached = prompt, batch = prompt;
    query.query += draw.size(1, 2000);
    cached.cached += draw.size(1, 2000);
    batch.sequences += std::int64_t(draw.size(1, 20));
    for (int tier = 0; tier < 2; ++tier) {
      const double before = seconds({family, prompt.op()}, device, tier_of(tier));
      for (const Prompt& longer : {query, cached, batch}) {
        EXPECT_GE(seconds({family, longer.op()}, device, tier_of(tier)), before * (1 - 1e-9))
            << name_of(family) << " draw " << n << " tier " << tier;
      }
    }
  }
}

// A prompt under a sliding window takes as long as its query-key pairs and the ragged edges of its tiles, at any window.
TEST(KernelLaws, WindowsOfPromptsTakeAsLongAsTheirPairs) {
  Device device = toys::gpu();
  device.architecture = "Hopper";
  constexpr double kPrompt = 16384;
  const auto time = [&](double window) {
    const AttentionPrefill op{.sequences = 4,
                              .tokens = 4 * kPrompt,
                              .pairs = 4 * causal_pairs(kPrompt, 0, window),
                              .kv_tokens = 4 * kPrompt,
                              .heads = 32,
                              .kv_heads = 8,
                              .window = std::int64_t(window)};
    return seconds({Family::attn_prefill, op}, device, &toys::transfer());
  };
  const double all = time(kPrompt);
  double before = 0;
  for (double window = 4096; window <= kPrompt; window += 512) {
    const double share = causal_pairs(kPrompt, 0, window) / causal_pairs(kPrompt, 0, 0);
    const double taken = time(window) / all;
    EXPECT_GT(taken, before) << window;
    EXPECT_NEAR(taken, share, 0.08) << window;
    before = taken;
  }
}

TEST(KernelLaws, ABetterDeviceIsNeverSlower) {
  const std::array<void (*)(Device&), 5> better{
      [](Device& d) { d.memory_bandwidth *= 1.4; }, [](Device& d) { d.l2_capacity *= 1.5; },
      [](Device& d) { d.l2_bandwidth *= 1.5; }, [](Device& d) { d.clock *= 1.2; },
      [](Device& d) { d.launch_latency *= 0.7; }};
  for (std::uint64_t n = 0; n < kDraws; ++n) {
    const Device device = random_device(n);
    const Call call = random_call(n);
    for (int tier = 0; tier < 2; ++tier) {
      const double before = seconds(call, device, tier_of(tier));
      for (std::size_t i = 0; i < better.size(); ++i) {
        Device improved = device;
        better[i](improved);
        EXPECT_LE(seconds(call, improved, tier_of(tier)), before * (1 + 1e-9))
            << name(call, n, tier) << " change " << i;
      }
    }
  }
}

TEST(KernelLaws, TimeIsContinuousWhereTheShapeIs) {
  // Bytes, contexts and messages vary smoothly; tiles and waves are steps by nature.
  for (std::uint64_t n = 0; n < kDraws; ++n) {
    const Device device = random_device(n);
    const Call call = random_call(n);
    const bool smooth = std::holds_alternative<Elementwise>(call.op) ||
                        std::holds_alternative<AttentionDecode>(call.op) ||
                        std::holds_alternative<Copy>(call.op);
    if (!smooth) continue;
    for (int tier = 0; tier < 2; ++tier) {
      const double before = seconds(call, device, tier_of(tier));
      const double after =
          seconds({call.family, growths(call.op)[0](call.op, 1 + 1e-7)}, device, tier_of(tier));
      EXPECT_NEAR(after / before, 1, 1e-5) << name(call, n, tier);
    }
  }
}

TEST(KernelLaws, TransferHasParametersForWhatItClaims) {
  Device device = random_device(1);
  device.architecture = "Hopper";
  for (std::uint64_t n = 0; n < 200; ++n) {
    const Call call = random_call(n);
    if (std::holds_alternative<Gemm>(call.op) || std::holds_alternative<Moe>(call.op) ||
        std::holds_alternative<AttentionDecode>(call.op)) {
      EXPECT_EQ(kernel_time(call.family, call.op, device, &toys::transfer()).tier, Tier::transfer)
          << name(call, n, 1);
    }
  }
}

TEST(KernelLaws, CollectivesObeyThemToo) {
  for (std::uint64_t n = 0; n < kDraws; ++n) {
    Draw draw(n + 33);
    Device device = random_device(n);
    device.scale_up.bandwidth = BytesPerSecond{draw.size(2e10, 2e12)};
    device.scale_up.latency = Seconds{draw.uniform(3e-7, 3e-6)};
    device.scale_up.topology = draw.pick(Topology::fabric, Topology::mesh, Topology::ring);
    device.scale_up.in_network_reduction = draw.pick(0, 1) == 1;
    const Collective op{
        .pattern = draw.pick(Pattern::all_reduce, Pattern::all_gather, Pattern::reduce_scatter,
                             Pattern::all_to_all, Pattern::send_recv),
        .bytes = draw.size(16, 1e10),
        .ranks = draw.pick<std::int64_t>(2, 4, 8, 32)};
    for (int tier = 0; tier < 2; ++tier) {
      const auto time = [&](const Collective& what, const Device& on) {
        return collective_time(what, fabric_of(Cluster{}, on), on, tier_of(tier));
      };
      const CollectiveTime before = time(op, device);
      const std::string where = "draw " + std::to_string(n) + " tier " + std::to_string(tier);
      ASSERT_TRUE(std::isfinite(before.total().value)) << where;
      Collective larger = op;
      larger.bytes *= draw.pick(1.001, 1.5, 3.0);
      EXPECT_GE(time(larger, device).total(), before.total() * (1 - 1e-9)) << where;
      larger.bytes = op.bytes * (1 + 1e-7);
      EXPECT_NEAR(time(larger, device).total() / before.total(), 1, 1e-5) << where;
      Device faster = device;
      faster.scale_up.bandwidth *= 1.5;
      EXPECT_LE(time(op, faster).total(), before.total() * (1 + 1e-9)) << where;
      Device prompt = device;
      prompt.scale_up.latency *= 0.5;
      EXPECT_LE(time(op, prompt).total(), before.total() * (1 + 1e-9)) << where;
      if (op.ranks <= 8 && device.scale_up.topology == Topology::fabric) {
        const double sent = op.pattern == Pattern::send_recv
                                ? op.bytes
                                : op.bytes * double(op.ranks - 1) / double(op.ranks);
        EXPECT_GE(before.total().value, sent / device.scale_up.bandwidth.value * (1 - 1e-12))
            << where;
      }
    }
  }
}

// Attention multiplies on the units that products multiply on: it reaches no more of their peak than large products do, whoever
// measured either. (To a tenth: a set that is of several generations has the mean of each.)
TEST(KernelLaws, AttentionIsNoFasterThanProducts) {
  const AttentionPrefill attention{.sequences = 8,
                                   .tokens = 8 * 8192.0,
                                   .pairs = 8 * 8192.0 * 8193 / 2,
                                   .kv_tokens = 8 * 8192.0,
                                   .heads = 32,
                                   .kv_heads = 8,
                                   .key_dim = 128,
                                   .value_dim = 128};
  const Gemm product{.m = 8192, .n = 16384, .k = 16384};
  const auto rate = [](Family family, const Op& op, const Device& device) {
    const KernelTime time = kernel_time(family, op, device, &toys::transfer());
    return time.flops / time.total();
  };
  for (const Device& device : toys::shipped_devices()) {
    EXPECT_LE(rate(Family::attn_prefill, attention, device).value,
              rate(Family::gemm, product, device).value * 1.1)
        << device.name;
  }
}

}  // namespace
}  // namespace engine

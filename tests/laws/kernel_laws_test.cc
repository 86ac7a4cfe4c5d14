// Laws of physics for every kernel family, at every tier, over random shapes and devices.
//
// Where a form is not monotone by nature the law says so: a prompt of given context takes whole waves of
// tiles, so query tokens are added behind a fixed prefix; more experts may be fewer tiles, so experts
// are not varied. Measured points are not monotone themselves: that tier is exact at them instead.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <string>

#include "engine/base/random.h"
#include "engine/comm/collective_time.h"
#include "engine/kernels/kernel_time.h"
#include "engine/kernels/own_slot.h"
#include "engine/model/batch_shape.h"
#include "tests/support/calibrations.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

constexpr std::uint64_t kDraws = 3000;

class Draw {
 public:
  explicit Draw(std::uint64_t n) : n_(n) {}
  double uniform(double low, double high) {
    return low + (high - low) * engine::uniform(11, Stream::sampling, n_, lane_++);
  }
  double size(double low, double high) {
    return std::floor(low * std::pow(high / low, uniform(0, 1)) + 0.5);
  }
  template <class T, class... More>
  T pick(T first, More... more) {
    const std::array<T, 1 + sizeof...(more)> all{first, more...};
    return all[std::size_t(uniform(0, 1) * double(all.size()))];
  }

 private:
  std::uint64_t n_;
  std::uint32_t lane_ = 0;
};

Device random_device(std::uint64_t n) {
  Draw draw(n + 1'000'000);
  Device device = toys::gpu();
  device.architecture = draw.pick<const char*>("Ampere", "Hopper", "Blackwell", "Ada", "CDNA 3");
  device.shared_memory = Bytes{164.0 * 1024};
  device.multiprocessors = std::int64_t(draw.size(16, 300));
  device.rated_multiprocessors = device.multiprocessors;
  device.clock = device.rated_clock = Hertz{draw.uniform(0.8e9, 3e9)};
  const double peak = double(device.multiprocessors) * device.clock.value *
                      draw.pick(1024.0, 2048.0, 4096.0, 8192.0);
  device.peak.bf16 = device.peak.fp16 = FlopsPerSecond{peak};
  device.peak.fp8 = device.peak.int8 = FlopsPerSecond{2 * peak};
  device.peak.fp4 = FlopsPerSecond{4 * peak};
  device.memory_bandwidth = BytesPerSecond{draw.size(2e11, 1e13)};
  device.l2_capacity = Bytes{draw.size(4e6, 3e8)};
  device.l2_bandwidth = BytesPerSecond{draw.size(1e12, 3e13)};
  device.launch_latency = Seconds{draw.uniform(1e-6, 5e-6)};
  return device;
}

// A shape of a family, and how it can grow: each change must not make a call faster.
struct Call {
  Family family = Family::gemm;
  Op op;
};
using Growth = std::function<Op(const Op&, double)>;

template <class T>
Growth growth(void (*change)(T&, double)) {
  return [change](const Op& op, double by) {
    T grown = std::get<T>(op);
    change(grown, by);
    return Op{grown};
  };
}

std::int64_t more(std::int64_t value, double by) {
  return std::int64_t(std::ceil(double(value) * by));
}

Op random_gemm(Draw& draw) {
  Gemm gemm{.m = std::int64_t(draw.size(1, 30000)),
            .n = std::int64_t(draw.size(16, 60000)),
            .k = std::int64_t(draw.size(16, 60000)),
            .batch = draw.pick<std::int64_t>(1, 1, 1, 16)};
  switch (draw.pick(0, 1, 2, 3, 4, 5, 6)) {
    case 0:
      break;
    case 1:
      gemm.weights = gemm.activations = Dtype::fp8;
      break;
    case 2:
      gemm.weights = gemm.activations = Dtype::fp8;
      gemm.group = 1 << 20;
      break;
    case 3:
      gemm.weights = gemm.activations = Dtype::fp4;
      gemm.group = 16;
      break;
    case 4:
      gemm.weights = Dtype::int4;
      break;
    case 5:
      gemm.weights = Dtype::int8;
      break;
    default:
      gemm.weights = gemm.activations = Dtype::int8;
      break;
  }
  gemm.quantizes_input = draw.pick(0, 1) == 1;
  return gemm;
}

Op random_moe(Draw& draw) {
  const std::int64_t local = std::int64_t(draw.size(1, 64));
  const std::int64_t experts = local * draw.pick<std::int64_t>(1, 2, 8);
  return Moe{.tokens = draw.size(1, 20000),
             .hidden = std::int64_t(draw.size(512, 8192)),
             .intermediate = std::int64_t(draw.size(128, 16384)),
             .top_k = std::min<std::int64_t>(experts, draw.pick<std::int64_t>(1, 2, 8)),
             .experts = experts,
             .local_experts = local,
             .gated = draw.pick(0, 1) == 1,
             .balanced = draw.pick(0, 1, 2) == 0,
             .skew = draw.pick(0.0, 0.5, 1.01, 1.2),
             .weights = draw.pick(Dtype::bf16, Dtype::fp8, Dtype::int4),
             .activations = draw.pick(Dtype::bf16, Dtype::fp8)};
}

AttentionPrefill prefill_of(AttentionPrefill op, std::int64_t sequences, double query,
                            double cached) {
  const double window = double(op.window);
  const double kept = window > 0 ? std::min(query + cached, window + query - 1) : query + cached;
  op.sequences = sequences;
  op.tokens = double(sequences) * query;
  op.kv_tokens = double(sequences) * kept;
  op.pairs = double(sequences) * causal_pairs(query, cached, window);
  return op;
}

// The parts of a random prompt, so that it can be built again a little larger.
struct Prompt {
  AttentionPrefill heads;
  std::int64_t sequences;
  double query, cached;
  Op op() const { return prefill_of(heads, sequences, query, cached); }
};

Prompt random_prompt(Draw& draw, Family family) {
  AttentionPrefill op;
  op.kv_heads = std::int64_t(draw.size(1, 32));
  op.heads = op.kv_heads * draw.pick<std::int64_t>(1, 4, 8);
  op.key_dim = op.value_dim = draw.pick<std::int64_t>(64, 128, 256);
  op.window = draw.pick<std::int64_t>(0, 0, 1024);
  op.kv = draw.pick(Dtype::bf16, Dtype::fp8);
  op.activations = draw.pick(Dtype::bf16, Dtype::fp8);
  if (family == Family::mla_prefill) {
    op.kv_heads = op.heads;
    op.key_dim = 192;
    op.value_dim = 128;
    op.latent = 576;
    op.window = 0;
  }
  return {op, std::int64_t(draw.size(1, 64)), draw.size(1, 8192),
          draw.pick(0, 1) == 1 ? draw.size(1, 30000) : 0};
}

Op random_decode(Draw& draw, Family family) {
  AttentionDecode op;
  op.sequences = std::int64_t(draw.size(1, 512));
  op.kv_tokens = double(op.sequences) * draw.size(1, 100000);
  op.kv_heads = std::int64_t(draw.size(1, 32));
  op.heads = op.kv_heads * draw.pick<std::int64_t>(1, 4, 8, 128);
  op.key_dim = op.value_dim = draw.pick<std::int64_t>(64, 128, 256);
  op.kv = draw.pick(Dtype::bf16, Dtype::fp8);
  op.warm = draw.pick(0, 1) == 1;
  if (family == Family::mla_decode) {
    op.kv_heads = 1;
    op.key_dim = 576;
    op.value_dim = 512;
    op.values_in_keys = true;
  }
  return op;
}

constexpr std::array kPasses{Family::norm,  Family::residual, Family::rope,   Family::act,
                             Family::embed, Family::kv_write, Family::sample, Family::route};

// A random call of any family but prompts, which grow in a way of their own.
Call random_call(std::uint64_t n) {
  Draw draw(n);
  switch (n % 10) {
    case 0:
    case 1:
      return {Family::gemm, random_gemm(draw)};
    case 2: {
      const double touched = draw.size(1, 128);
      return {Family::grouped_gemm, GroupedGemm{.rows = touched * draw.size(1, 512),
                                                .touched = touched,
                                                .n = std::int64_t(draw.size(64, 16384)),
                                                .k = std::int64_t(draw.size(64, 16384))}};
    }
    case 3:
      return {Family::moe, random_moe(draw)};
    case 4: {
      const Family family = draw.pick(Family::attn_decode, Family::mla_decode);
      return {family, random_decode(draw, family)};
    }
    case 5: {
      const bool pre = draw.pick(0, 1) == 0;
      return {pre ? Family::mla_gen_pre : Family::mla_gen_post,
              Gemm{.m = std::int64_t(draw.size(1, 4096)),
                   .n = pre ? 512 : 128,
                   .k = pre ? 128 : 512,
                   .batch = std::int64_t(draw.size(1, 128))}};
    }
    case 6:
    case 7: {
      const std::size_t which = std::size_t(draw.uniform(0, double(kPasses.size())));
      return {kPasses[which], Elementwise{.rows = draw.size(1, 8192),
                                          .resident_bytes = draw.size(1e3, 1e9),
                                          .cold_bytes = draw.size(1, 1e7),
                                          .flops = draw.size(1, 1e8)}};
    }
    case 8:
      switch (draw.pick(0, 1, 2)) {
        case 0:
          return {Family::lora, Lora{.tokens = draw.size(1, 4096),
                                     .adapters = draw.size(1, 64),
                                     .rank = std::int64_t(draw.size(4, 256)),
                                     .input = std::int64_t(draw.size(512, 8192)),
                                     .output = std::int64_t(draw.size(512, 8192))}};
        case 1:
          return {Family::linear_attention, Scan{.sequences = 4,
                                                 .tokens = 4 * draw.size(1, 8192),
                                                 .heads = std::int64_t(draw.size(1, 128))}};
        default:
          return {Family::convolution, Convolution{.tokens = draw.size(1, 8192),
                                                   .channels = std::int64_t(draw.size(64, 8192))}};
      }
    default:
      if (draw.pick(0, 1) == 0) {
        return {Family::quantize, Quantize{.rows = draw.size(1, 8192),
                                           .width = draw.size(64, 16384),
                                           .group = draw.pick<std::int64_t>(128, 1 << 20)}};
      }
      return {Family::copy_h2d, Copy{.bytes = draw.size(1, 1e9), .path = CopyPath::host_to_device}};
  }
}

// Every way the shape of an op can grow.
std::vector<Growth> growths(const Op& op) {
  struct {
    std::vector<Growth> operator()(const Gemm&) const {
      return {growth<Gemm>([](Gemm& g, double by) { g.m = more(g.m, by); }),
              growth<Gemm>([](Gemm& g, double by) { g.n = more(g.n, by); }),
              growth<Gemm>([](Gemm& g, double by) { g.k = more(g.k, by); }),
              growth<Gemm>([](Gemm& g, double by) { g.batch = more(g.batch, by); })};
    }
    std::vector<Growth> operator()(const GroupedGemm&) const {
      return {growth<GroupedGemm>([](GroupedGemm& g, double by) { g.rows *= by; }),
              growth<GroupedGemm>([](GroupedGemm& g, double by) { g.n = more(g.n, by); }),
              growth<GroupedGemm>([](GroupedGemm& g, double by) { g.k = more(g.k, by); })};
    }
    std::vector<Growth> operator()(const Moe&) const {
      return {growth<Moe>([](Moe& m, double by) { m.tokens = std::ceil(m.tokens * by); }),
              growth<Moe>([](Moe& m, double by) { m.hidden = more(m.hidden, by); }),
              growth<Moe>([](Moe& m, double by) { m.intermediate = more(m.intermediate, by); })};
    }
    std::vector<Growth> operator()(const AttentionPrefill&) const { return {}; }
    std::vector<Growth> operator()(const AttentionDecode&) const {
      return {growth<AttentionDecode>([](AttentionDecode& a, double by) { a.kv_tokens *= by; }),
              growth<AttentionDecode>([](AttentionDecode& a, double by) {
                const double each = a.kv_tokens / double(a.sequences);
                a.sequences = more(a.sequences, by);
                a.kv_tokens = each * double(a.sequences);
              }),
              growth<AttentionDecode>([](AttentionDecode& a, double by) {
                const std::int64_t group = a.heads / a.kv_heads;
                if (!a.values_in_keys) a.kv_heads = more(a.kv_heads, by);
                a.heads = a.values_in_keys ? more(a.heads, by) : a.kv_heads * group;
              })};
    }
    std::vector<Growth> operator()(const Elementwise&) const {
      return {growth<Elementwise>([](Elementwise& e, double by) { e.resident_bytes *= by; }),
              growth<Elementwise>([](Elementwise& e, double by) { e.cold_bytes *= by; })};
    }
    std::vector<Growth> operator()(const Quantize&) const {
      return {growth<Quantize>([](Quantize& q, double by) { q.rows *= by; }),
              growth<Quantize>([](Quantize& q, double by) { q.width *= by; })};
    }
    std::vector<Growth> operator()(const Copy&) const {
      return {growth<Copy>([](Copy& c, double by) { c.bytes *= by; })};
    }
    std::vector<Growth> operator()(const Lora&) const {
      return {growth<Lora>([](Lora& l, double by) { l.tokens *= by; }),
              growth<Lora>([](Lora& l, double by) { l.rank = more(l.rank, by); })};
    }
    std::vector<Growth> operator()(const Scan&) const {
      return {growth<Scan>([](Scan& s, double by) { s.tokens *= by; }),
              growth<Scan>([](Scan& s, double by) { s.state = more(s.state, by); })};
    }
    std::vector<Growth> operator()(const Convolution&) const {
      return {growth<Convolution>([](Convolution& c, double by) { c.tokens *= by; })};
    }
    std::vector<Growth> operator()(const Collective&) const { return {}; }
    std::vector<Growth> operator()(const ExpertExchange&) const { return {}; }
  } list;
  return std::visit(list, op);
}

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

// A sweep of a device that is 10% to 40% slower than its base, drawn at random.
TEST(KernelLaws, MeasuredPointsReturnExactly) {
  const Device device = random_device(3);
  Calibration measured = toys::transfer();
  std::vector<Call> calls;
  std::vector<double> times;
  std::map<std::string, std::pair<OwnSlot, std::vector<MeasuredPoint>>> slots;
  for (std::uint64_t n = 0; n < 2000; ++n) {
    const Call call = random_call(n);
    const OwnSlot slot = own_slot(measured, call.family, call.op, device);
    if (slot.facts == nullptr) continue;
    const double slower = 0.1 + 0.3 * uniform(5, Stream::sampling, n);
    const Coordinates shape = coordinates_of(call.family, call.op);
    auto& [own, points] = slots[slot.section];
    own = slot;
    bool repeated = false;
    for (const MeasuredPoint& point : points) repeated |= point.shape.value == shape.value;
    if (repeated) continue;
    points.push_back({shape, slower});
    calls.push_back(call);
    times.push_back(seconds(call, device, &measured) * std::exp(slower));
  }
  for (auto& [section, slot] : slots) {
    slot.first.facts->points = PointSet(slot.second, slot.first.coordinates);
  }
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const KernelTime time = kernel_time(calls[i].family, calls[i].op, device, &measured);
    EXPECT_NEAR(time.total().value / times[i], 1, 1e-9) << name_of(calls[i].family) << " " << i;
    EXPECT_EQ(time.tier, Tier::measured);
    EXPECT_GE(time.total(), time.least);
    // A little beside the point, a little beside the time.
    const std::vector<Growth> ways = growths(calls[i].op);
    if (!std::holds_alternative<Elementwise>(calls[i].op)) continue;
    const Op beside = ways[0](calls[i].op, 1 + 1e-9);
    EXPECT_NEAR(seconds({calls[i].family, beside}, device, &measured) / times[i], 1, 1e-4);
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
      // A bus that becomes a fast link gets other parameters.
      const bool same_kind = (device.scale_up.bandwidth.value >= 100e9 * 7) ||
                             device.scale_up.bandwidth.value * 1.5 < 100e9;
      if (tier == 0 || same_kind) {
        EXPECT_LE(time(op, faster).total(), before.total() * (1 + 1e-9)) << where;
      }
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

}  // namespace
}  // namespace engine

#include "tests/support/random_calls.h"

#include <algorithm>

#include "engine/model/batch_shape.h"
#include "tests/support/toys.h"

namespace toys {
namespace {

using namespace engine;

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

Op random_decode(Draw& draw, Family family) {
  AttentionDecode op;
  op.sequences = std::int64_t(draw.size(1, 512));
  op.kv_tokens = double(op.sequences) * draw.size(1, 100000);
  op.kv_heads = std::int64_t(draw.size(1, 32));
  op.heads = op.kv_heads * draw.pick<std::int64_t>(1, 4, 8, 128);
  op.key_dim = op.value_dim = draw.pick<std::int64_t>(64, 128, 256);
  op.kv = draw.pick(Dtype::bf16, Dtype::fp8);
  op.warm = draw.pick(0, 1) == 1;
  op.stores_kv = draw.pick(0, 1) == 1;
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

}  // namespace

Device random_device(std::uint64_t n) {
  Draw draw(n + 1'000'000);
  Device device = gpu();
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
      switch (draw.pick(0, 1, 2, 3)) {
        case 0:
          return {Family::lora, Lora{.tokens = draw.size(1, 4096),
                                     .adapters = draw.size(1, 64),
                                     .rank = std::int64_t(draw.size(4, 256)),
                                     .input = std::int64_t(draw.size(512, 8192)),
                                     .output = std::int64_t(draw.size(512, 8192))}};
        case 1:
          return {Family::linear_attention,
                  Scan{.rule = draw.pick(ScanRule::add, ScanRule::delta, ScanRule::channel_delta),
                       .sequences = 4,
                       .tokens = 4 * draw.size(1, 8192),
                       .heads = std::int64_t(draw.size(1, 128))}};
        case 2: {
          const double pixels = draw.size(49, 200704), channels = draw.size(3, 2048);
          const auto filters = std::int64_t(draw.size(16, 2048));
          return {Family::convolution, ImageConvolution{.rows = pixels,
                                                        .n = filters,
                                                        .k = std::int64_t(channels) * 9,
                                                        .values_in = pixels * channels,
                                                        .values_out = pixels * double(filters)}};
        }
        default:
          return {Family::convolution, Convolution{.tokens = draw.size(1, 8192),
                                                   .channels = std::int64_t(draw.size(64, 8192))}};
      }
    default:
      if (draw.pick(0, 1) == 0) {
        return {Family::quantize, Quantize{.rows = draw.size(1, 8192),
                                           .width = draw.size(64, 16384),
                                           .group = draw.pick<std::int64_t>(128, 1 << 20),
                                           .cold = draw.pick(0, 1) == 1}};
      }
      return {Family::copy_h2d, Copy{.bytes = draw.size(1, 1e9), .path = CopyPath::host_to_device}};
  }
}

Op Prompt::op() const {
  AttentionPrefill op = heads;
  const double window = double(op.window);
  const double kept = window > 0 ? std::min(query + cached, window + query - 1) : query + cached;
  op.sequences = sequences;
  op.tokens = double(sequences) * query;
  op.kv_tokens = double(sequences) * kept;
  op.pairs = double(sequences) * causal_pairs(query, cached, window);
  return op;
}

Prompt random_prompt(Draw& draw, Family family) {
  AttentionPrefill op;
  op.kv_heads = std::int64_t(draw.size(1, 32));
  op.heads = op.kv_heads * draw.pick<std::int64_t>(1, 4, 8);
  op.key_dim = op.value_dim = draw.pick<std::int64_t>(64, 128, 256);
  op.window = draw.pick<std::int64_t>(0, 0, 1024);
  op.kv = draw.pick(Dtype::bf16, Dtype::fp8);
  op.activations = draw.pick(Dtype::bf16, Dtype::fp8);
  op.stores_kv = draw.pick(0, 1) == 1;
  op.shares_keys = draw.pick(0, 1) == 1;
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
    // More images, or more channels of the output.
    std::vector<Growth> operator()(const ImageConvolution&) const {
      return {growth<ImageConvolution>([](ImageConvolution& c, double by) {
                c.rows *= by;
                c.values_in *= by;
                c.values_out *= by;
              }),
              growth<ImageConvolution>([](ImageConvolution& c, double by) {
                const double before = double(c.n);
                c.n = more(c.n, by);
                c.values_out *= double(c.n) / before;
              })};
    }
    std::vector<Growth> operator()(const Collective&) const { return {}; }
    std::vector<Growth> operator()(const ExpertExchange&) const { return {}; }
  } list;
  return std::visit(list, op);
}

}  // namespace toys

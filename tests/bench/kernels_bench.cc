// How long one kernel time takes to compute, by family and tier.
//
//     build/release/llmsweep_bench --benchmark_filter=Kernel
#include <benchmark/benchmark.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/random.h"
#include "engine/comm/collective_time.h"
#include "engine/kernels/kernel_time.h"
#include "engine/model/batch_shape.h"
#include "tests/support/calibrations.h"
#include "tests/support/paths.h"
#include "tests/support/toys.h"

namespace {

using namespace engine;

Device hopper() {
  Device device = toys::gpu();
  device.architecture = "Hopper";
  device.multiprocessors = device.rated_multiprocessors = 132;
  device.clock = device.rated_clock = Hertz{1.83e9};
  return device;
}

// Shapes that vary, so that no branch is learned by heart.
double draw(std::size_t n, std::uint32_t lane, double low, double high) {
  return std::floor(low * std::pow(high / low, uniform(3, Stream::sampling, n, lane)));
}

template <class Make>
std::vector<Op> ops(Make make) {
  std::vector<Op> all;
  for (std::size_t n = 0; n < 256; ++n) all.push_back(make(n));
  return all;
}

const std::vector<Op>& gemms() {
  static const std::vector<Op> all = ops([](std::size_t n) {
    return Gemm{.m = std::int64_t(draw(n, 0, 1, 8192)),
                .n = std::int64_t(draw(n, 1, 256, 16384)),
                .k = std::int64_t(draw(n, 2, 256, 16384))};
  });
  return all;
}
const std::vector<Op>& decodes() {
  static const std::vector<Op> all = ops([](std::size_t n) {
    const double sequences = draw(n, 0, 1, 256);
    return AttentionDecode{.sequences = std::int64_t(sequences),
                           .kv_tokens = sequences * draw(n, 1, 16, 32768),
                           .heads = 32,
                           .kv_heads = 8};
  });
  return all;
}
const std::vector<Op>& prefills() {
  static const std::vector<Op> all = ops([](std::size_t n) {
    const double query = draw(n, 0, 1, 8192), cached = draw(n, 1, 1, 8192);
    return AttentionPrefill{.sequences = 1,
                            .tokens = query,
                            .pairs = causal_pairs(query, cached, 0),
                            .kv_tokens = query + cached,
                            .heads = 32,
                            .kv_heads = 8};
  });
  return all;
}
const std::vector<Op>& moes() {
  static const std::vector<Op> all = ops([](std::size_t n) {
    return Moe{.tokens = draw(n, 0, 1, 8192),
               .hidden = 4096,
               .intermediate = 1536,
               .top_k = 8,
               .experts = 128,
               .local_experts = 128};
  });
  return all;
}
const std::vector<Op>& passes() {
  static const std::vector<Op> all = ops([](std::size_t n) {
    return Elementwise{.rows = draw(n, 0, 1, 8192), .resident_bytes = draw(n, 1, 1e4, 1e9)};
  });
  return all;
}

void run(benchmark::State& state, Family family, const std::vector<Op>& all,
         const Calibration* calibration) {
  const Device device = hopper();
  std::size_t n = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(kernel_time(family, all[n++ % all.size()], device, calibration));
  }
}

// The sweep of an H200 that ships with the program.
const Calibration& measured() {
  static const Calibration calibration = [] {
    const std::string path = paths::specs("calibration/h200-sxm.calibration");
    auto read = parse_calibration(toys::file_text(path), path);
    return completed_by(std::move(read).value(), toys::transfer());
  }();
  return calibration;
}

void KernelGemmRoofline(benchmark::State& state) { run(state, Family::gemm, gemms(), nullptr); }
BENCHMARK(KernelGemmRoofline);
void KernelGemm(benchmark::State& state) { run(state, Family::gemm, gemms(), &toys::transfer()); }
BENCHMARK(KernelGemm);
void KernelGemmMeasured(benchmark::State& state) { run(state, Family::gemm, gemms(), &measured()); }
BENCHMARK(KernelGemmMeasured);
void KernelDecodeMeasured(benchmark::State& state) {
  run(state, Family::attn_decode, decodes(), &measured());
}
BENCHMARK(KernelDecodeMeasured);
void KernelPrefillMeasured(benchmark::State& state) {
  run(state, Family::attn_prefill, prefills(), &measured());
}
BENCHMARK(KernelPrefillMeasured);
void KernelElementwiseMeasured(benchmark::State& state) {
  run(state, Family::act, passes(), &measured());
}
BENCHMARK(KernelElementwiseMeasured);
void KernelDecode(benchmark::State& state) {
  run(state, Family::attn_decode, decodes(), &toys::transfer());
}
BENCHMARK(KernelDecode);
void KernelPrefill(benchmark::State& state) {
  run(state, Family::attn_prefill, prefills(), &toys::transfer());
}
BENCHMARK(KernelPrefill);
void KernelMoe(benchmark::State& state) { run(state, Family::moe, moes(), &toys::transfer()); }
BENCHMARK(KernelMoe);
void KernelElementwise(benchmark::State& state) {
  run(state, Family::act, passes(), &toys::transfer());
}
BENCHMARK(KernelElementwise);
void KernelAllReduce(benchmark::State& state) {
  const Device device = hopper();
  const Fabric fabric = fabric_of(Cluster{}, device);
  std::size_t n = 0;
  for (auto _ : state) {
    const Collective op{.bytes = draw(n++ % 64, 0, 1e3, 1e8), .ranks = 8};
    benchmark::DoNotOptimize(collective_time(op, fabric, device, &toys::transfer()));
  }
}
BENCHMARK(KernelAllReduce);

}  // namespace

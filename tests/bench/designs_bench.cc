// How long it takes to read many designs that somebody made: as sub-sweeps of a concat. Time per design is the same for few and many.
//
//     build/release/llmsweep_bench --benchmark_filter=Designs
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <string>

#include "sweep/language/sweep_spec.h"
#include "tests/support/paths.h"

namespace {

std::string concat_of(std::int64_t designs) {
  std::string text =
      "base: {task: step, device: h100-sxm, cluster: dgx-h100, model: llama-3.1-8b}\naxes:\n  - "
      "concat:\n";
  for (std::int64_t i = 0; i < designs; ++i) {
    text += fmt::format(
        "      - {{name: d{0}, base: {{parallel.tp: {1}, step.batch: {2}, device.memory_bandwidth: "
        "{3} GB/s, "
        "device.peak.bf16: {4} TFLOP/s}}}}\n",
        i, 1 << (i % 4), i + 1, 2000 + i, 900 + i);
  }
  return text;
}

void DesignsAsSubSweeps(benchmark::State& state) {
  const std::string text = concat_of(state.range(0));
  for (auto _ : state) {
    const auto spec =
        sweep::read_sweep_text(text, "designs.yaml", sweep::Library({paths::specs()}));
    benchmark::DoNotOptimize(spec->space.size());
  }
  state.SetComplexityN(state.range(0));
}
BENCHMARK(DesignsAsSubSweeps)
    ->RangeMultiplier(4)
    ->Range(256, 4096)
    ->Complexity(benchmark::oN)
    ->Unit(benchmark::kMillisecond);

}  // namespace

// How long one point takes: building it, naming it, evaluating it.
//
//     build/release/llmsweep_bench --benchmark_filter=Point
#include <benchmark/benchmark.h>

#include "engine/evaluate.h"
#include "engine/leaves.h"
#include "sweep/space/space.h"
#include "sweep/spec/library.h"
#include "sweep/spec/sweep_spec.h"

namespace {

// The space of the README's million-point benchmark: a decode step of a 70B model, TP 8.
const sweep::SweepSpec& million() {
  static const sweep::SweepSpec spec = [] {
    auto read = sweep::read_sweep(LLMSWEEP_SPECS_DIR "/sweeps/million_points.yaml",
                                  sweep::Library({LLMSWEEP_SPECS_DIR}));
    if (!read) {
      std::fputs(engine::to_text(read.mistakes()).c_str(), stderr);
      std::abort();
    }
    return std::move(read).value();
  }();
  return spec;
}

// Positions in an order that jumps over the grid, so that no two in a row share much.
std::uint64_t jump(std::uint64_t i) { return i * 611'953 % million().space.size(); }

void PointBuild(benchmark::State& state) {
  sweep::PointBuilder builder(million().space);
  sweep::Point point;
  std::uint64_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(builder.build(jump(i++), point));
}
BENCHMARK(PointBuild);

void PointKey(benchmark::State& state) {
  const engine::Scenario& base = million().space.base();
  for (auto _ : state) benchmark::DoNotOptimize(engine::key_of(base));
}
BENCHMARK(PointKey);

void PointEvaluateStep(benchmark::State& state) {
  sweep::PointBuilder builder(million().space);
  std::vector<sweep::Point> points(256);
  for (std::size_t i = 0; i < points.size(); ++i) builder.build(jump(i), points[i]);
  engine::Outcome outcome;
  std::size_t i = 0;
  for (auto _ : state) {
    engine::evaluate_into(points[i++ % points.size()].scenario, outcome);
    benchmark::DoNotOptimize(outcome);
  }
}
BENCHMARK(PointEvaluateStep);

void PointEvaluateRequest(benchmark::State& state) {
  engine::Scenario scenario = million().space.base();
  scenario.task = engine::Task::request;
  engine::Outcome outcome;
  for (auto _ : state) {
    engine::evaluate_into(scenario, outcome);
    benchmark::DoNotOptimize(outcome);
  }
}
BENCHMARK(PointEvaluateRequest);

}  // namespace

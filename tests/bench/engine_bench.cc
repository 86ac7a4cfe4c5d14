// How long one point takes: building it, naming it, evaluating it.
//
//     build/release/llmsweep_bench --benchmark_filter=Point
#include <benchmark/benchmark.h>

#include "engine/evaluate.h"
#include "engine/leaves/leaves.h"
#include "sweep/language/sweep_spec.h"
#include "sweep/space/space.h"
#include "tests/bench/million_points.h"
#include "tests/support/paths.h"

namespace {

using bench::million_points;

// Positions in an order that jumps over the grid, so that no two in a row share much.
std::uint64_t jump(std::uint64_t i) { return i * 611'953 % million_points().space.size(); }

void PointBuild(benchmark::State& state) {
  sweep::PointBuilder builder(million_points().space);
  sweep::Point point;
  std::uint64_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(builder.build(jump(i++), point));
}
BENCHMARK(PointBuild);

void PointKey(benchmark::State& state) {
  const engine::Scenario& base = million_points().space.base();
  for (auto _ : state) benchmark::DoNotOptimize(engine::key_of(base));
}
BENCHMARK(PointKey);

// With the resources of the sweep kernels have fitted times; without them, those of the roofline.
void evaluate_steps(benchmark::State& state, const engine::Resources& resources) {
  sweep::PointBuilder builder(million_points().space);
  std::vector<sweep::Point> points(256);
  for (std::size_t i = 0; i < points.size(); ++i) builder.build(jump(i), points[i]);
  engine::Outcome outcome;
  std::size_t i = 0;
  for (auto _ : state) {
    engine::evaluate_into(points[i++ % points.size()].scenario, resources, outcome);
    benchmark::DoNotOptimize(outcome);
  }
}

void PointEvaluateStep(benchmark::State& state) { evaluate_steps(state, {}); }
BENCHMARK(PointEvaluateStep);

void PointEvaluateStepFitted(benchmark::State& state) {
  evaluate_steps(state, *million_points().resources);
}
BENCHMARK(PointEvaluateStepFitted);

// The same points on a device that was swept, by tier.
void evaluate_swept(benchmark::State& state, engine::TierChoice tier) {
  const auto h200 =
      sweep::read_named(sweep::Library({paths::specs()}), "devices", "h200-sxm").value();
  sweep::PointBuilder builder(million_points().space);
  std::vector<sweep::Point> points(256);
  for (std::size_t i = 0; i < points.size(); ++i) {
    builder.build(jump(i), points[i]);
    points[i].scenario.device = h200.scenario.device;
    points[i].scenario.calibration.tier = tier;
  }
  engine::Outcome outcome;
  std::size_t i = 0;
  for (auto _ : state) {
    engine::evaluate_into(points[i++ % points.size()].scenario, *million_points().resources,
                          outcome);
    benchmark::DoNotOptimize(outcome);
  }
}

void PointSweptRoofline(benchmark::State& state) {
  evaluate_swept(state, engine::TierChoice::roofline);
}
BENCHMARK(PointSweptRoofline);
void PointSweptTransfer(benchmark::State& state) {
  evaluate_swept(state, engine::TierChoice::transfer);
}
BENCHMARK(PointSweptTransfer);
void PointSweptMeasured(benchmark::State& state) {
  evaluate_swept(state, engine::TierChoice::measured);
}
BENCHMARK(PointSweptMeasured);

void PointEvaluateRequest(benchmark::State& state) {
  engine::Scenario scenario = million_points().space.base();
  scenario.task = engine::Task::request;
  engine::Outcome outcome;
  for (auto _ : state) {
    engine::evaluate_into(scenario, outcome);
    benchmark::DoNotOptimize(outcome);
  }
}
BENCHMARK(PointEvaluateRequest);

}  // namespace

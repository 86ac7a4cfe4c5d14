// How long a training point takes, and a pipeline alone.
//
//     build/release/llmsweep_bench --benchmark_filter=Train
#include <benchmark/benchmark.h>

#include <vector>

#include "engine/evaluate.h"
#include "engine/scratch.h"
#include "engine/training/pipeline/pipeline_schedule.h"
#include "sweep/language/sweep_spec.h"
#include "sweep/space/space.h"
#include "tests/support/paths.h"
#include "tests/support/training_toy.h"

namespace {

// Strategies of the search, in an order that jumps over the grid.
void TrainSearchPoint(benchmark::State& state) {
  const auto spec =
      sweep::read_sweep(paths::specs("sweeps/train_search.yaml"), sweep::Library({paths::specs()}))
          .value();
  sweep::PointBuilder builder(spec.space);
  std::vector<sweep::Point> points(256);
  for (std::size_t i = 0; i < points.size(); ++i) {
    builder.build(i * 611'953 % spec.space.size(), points[i]);
  }
  engine::Outcome outcome;
  std::size_t i = 0;
  for (auto _ : state) {
    engine::evaluate_into(points[i++ % points.size()].scenario, *spec.resources, outcome);
    benchmark::DoNotOptimize(outcome);
  }
}
BENCHMARK(TrainSearchPoint);

// 64 stages and 512 micro-batches; the ends differ from the stages between them.
void pipelines(benchmark::State& state, engine::Schedule schedule, std::int64_t chunks) {
  using engine::Seconds;
  const double weights = schedule == engine::Schedule::zero_bubble ? 1 : 0;
  std::vector<engine::ChunkTime> times(
      std::size_t(64 * chunks),
      {Seconds{1}, Seconds{2 - weights}, Seconds{weights}, Seconds{1}, Seconds{2}});
  times.front().forward = Seconds{1.03};
  times.back().backward = times.back().backward * 1.15;
  const engine::Pipeline pipeline{.schedule = schedule,
                                  .stages = 64,
                                  .micro_batches = 512,
                                  .send = Seconds{0.01},
                                  .chunks = times};
  for (auto _ : state) benchmark::DoNotOptimize(engine::pipeline_time(pipeline));
}
void TrainPipelineOneFOneB(benchmark::State& state) {
  pipelines(state, engine::Schedule::one_f_one_b, 1);
}
BENCHMARK(TrainPipelineOneFOneB);
void TrainPipelineZeroBubble(benchmark::State& state) {
  pipelines(state, engine::Schedule::zero_bubble, 1);
}
BENCHMARK(TrainPipelineZeroBubble);
void TrainPipelineInterleaved(benchmark::State& state) {
  pipelines(state, engine::Schedule::interleaved, 2);
}
BENCHMARK(TrainPipelineInterleaved);
void TrainPipelineDual(benchmark::State& state) { pipelines(state, engine::Schedule::dualpipe, 1); }
BENCHMARK(TrainPipelineDual);

// A whole point of that size, pipeline and kernels: 128 layers on 64 stages.
void points(benchmark::State& state, engine::Schedule schedule, std::int64_t chunks) {
  engine::Scenario scenario = toys::training();
  scenario.model.layers = 128;
  scenario.parallel.pp = 64;
  scenario.train.global_batch = 512;
  scenario.train.schedule = schedule;
  scenario.train.virtual_stages = chunks;
  scenario.device.memory_capacity = engine::Bytes{1e15};
  engine::Outcome outcome;
  engine::WorkMeter work;
  engine::Scratch scratch;
  for (auto _ : state) {
    engine::evaluate_into(scenario, {}, outcome, work, scratch);
    benchmark::DoNotOptimize(outcome);
  }
  if (outcome.status != engine::Status::ok) state.SkipWithError(outcome.reason.c_str());
}
void TrainPointOneFOneB(benchmark::State& state) {
  points(state, engine::Schedule::one_f_one_b, 1);
}
BENCHMARK(TrainPointOneFOneB);
void TrainPointZeroBubble(benchmark::State& state) {
  points(state, engine::Schedule::zero_bubble, 1);
}
BENCHMARK(TrainPointZeroBubble);
void TrainPointInterleaved(benchmark::State& state) {
  points(state, engine::Schedule::interleaved, 2);
}
BENCHMARK(TrainPointInterleaved);
void TrainPointDual(benchmark::State& state) { points(state, engine::Schedule::dualpipe, 1); }
BENCHMARK(TrainPointDual);

}  // namespace

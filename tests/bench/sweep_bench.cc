// A whole sweep in one process: threads 1 and 2, with the Parquet sink and with none, so that the
// price of writing is known.
//
//     build/release/llmsweep_bench --benchmark_filter=Sweep
#include <benchmark/benchmark.h>

#include <filesystem>
#include <memory>

#include "results/parquet_sink.h"
#include "results/run_folder.h"
#include "sweep/run/runner.h"
#include "tests/bench/million_points.h"

namespace {

constexpr std::uint64_t kPositions = 200'000;

class NullSink final : public sweep::RowSink {
 public:
  std::unique_ptr<sweep::ChunkRows> start_chunk() override { return std::make_unique<Rows>(); }
  void finish_chunk(std::unique_ptr<sweep::ChunkRows>, sweep::IndexRange,
                    const sweep::Tally&) override {}
  void flush() override {}

 private:
  struct Rows final : sweep::ChunkRows {
    void add(const sweep::Point&, const engine::Outcome& outcome) override {
      benchmark::DoNotOptimize(outcome.metrics.step_time);
    }
  };
};

void run_once(const sweep::SweepSpec& spec, sweep::RowSink& sink, int threads) {
  sweep::StopSignal stop;
  sweep::Progress progress;
  sweep::run_points(spec.space, sweep::IndexSet({0, kPositions}), sink,
                    {.resources = spec.resources.get(), .threads = threads}, stop, progress);
}

void report(benchmark::State& state) {
  state.counters["points/s"] = benchmark::Counter(double(kPositions) * double(state.iterations()),
                                                  benchmark::Counter::kIsRate);
}

void SweepNoSink(benchmark::State& state) {
  const sweep::SweepSpec& spec = bench::million_points();
  NullSink sink;
  for (auto _ : state) run_once(spec, sink, int(state.range(0)));
  report(state);
}
BENCHMARK(SweepNoSink)
    ->Arg(1)
    ->Arg(2)
    ->UseRealTime()
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);

void SweepToParquet(benchmark::State& state) {
  const sweep::SweepSpec& spec = bench::million_points();
  const auto folder = std::filesystem::temp_directory_path() / "llmsweep_sweep_bench";
  for (auto _ : state) {
    std::filesystem::remove_all(folder);
    auto run = results::RunFolder::open(folder, {.run_yaml = spec.resolved,
                                                 .spec_hash = spec.digest,
                                                 .shard = {},
                                                 .positions = spec.space.size()});
    results::ParquetSink sink(*run, results::schema_inputs(spec.space));
    run_once(spec, sink, int(state.range(0)));
  }
  std::filesystem::remove_all(folder);
  report(state);
}
BENCHMARK(SweepToParquet)
    ->Arg(1)
    ->Arg(2)
    ->UseRealTime()
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace

#include "sweep/run/runner.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "sweep/language/sweep_spec.h"

namespace sweep {
namespace {

Space toy_space() {
  auto spec = read_sweep_text(R"(
base:
  device: {name: toy, memory_capacity: 80 GB, memory_bandwidth: 1 TB/s, peak: {bf16: 100 TFLOP/s}}
  model: {name: toy, layers: 2, hidden: 256, heads: 2, kv_heads: 2, head_dim: 128, intermediate: 512}
axes:
  - step.batch: {linear: [1, 100], count: 100}
  - step.context: {linear: [1, 20], count: 20}
require: ["step.batch != 7"]
)",
                              "toy.yaml", Library{});
  EXPECT_TRUE(spec) << engine::to_text(spec.mistakes());
  return spec->space;
}

// Keeps rows in memory, and may refuse to take more.
class MemorySink final : public RowSink {
 public:
  std::size_t fail_after = ~std::size_t{0};
  std::map<std::uint64_t, double> rows;
  IndexSet positions;
  bool flushed = false;

  std::unique_ptr<ChunkRows> start_chunk() override { return std::make_unique<Rows>(); }
  void finish_chunk(std::unique_ptr<ChunkRows> chunk, IndexRange range, const Tally&) override {
    const std::lock_guard lock(mutex_);
    if (rows.size() >= fail_after) throw std::runtime_error("the disk is full");
    for (const auto& [index, time] : static_cast<Rows&>(*chunk).values) {
      EXPECT_TRUE(rows.emplace(index, time).second) << "point " << index << " came twice";
    }
    positions.add(range);
  }
  void flush() override { flushed = true; }

 private:
  struct Rows final : ChunkRows {
    void add(const Point& point, const engine::Outcome& outcome) override {
      values.emplace_back(point.index, outcome.metrics.step_time.value);
    }
    std::vector<std::pair<std::uint64_t, double>> values;
  };
  std::mutex mutex_;
};

RunReport run(const Space& space, const IndexSet& todo, MemorySink& sink, RunOptions options) {
  StopSignal stop;
  Progress progress;
  RunReport report = run_points(space, todo, sink, options, stop, progress);
  EXPECT_EQ(progress.positions(), report.tally.positions());
  return report;
}

TEST(Runner, AnyThreadCountGivesTheSameRows) {
  const Space space = toy_space();
  MemorySink reference;
  run(space, IndexSet({0, space.size()}), reference, {.threads = 1});
  EXPECT_EQ(reference.rows.size(), 99u * 20);
  EXPECT_TRUE(reference.flushed);
  for (const int threads : {2, 3, 7, 16}) {
    MemorySink sink;
    run(space, IndexSet({0, space.size()}), sink, {.threads = threads});
    EXPECT_EQ(sink.rows, reference.rows) << threads;
    EXPECT_EQ(sink.positions.count(), space.size());
  }
}

TEST(Runner, CountsWhatWasRejected) {
  const Space space = toy_space();
  MemorySink sink;
  const RunReport report = run(space, IndexSet({0, space.size()}), sink, {.threads = 2});
  EXPECT_EQ(report.tally.rejected, (std::vector<std::uint64_t>{20}));
  EXPECT_EQ(report.tally.positions(), space.size());
  EXPECT_FALSE(report.stopped);
}

TEST(Runner, DoesOnlyWhatIsLeft) {
  const Space space = toy_space();
  IndexSet todo({10, 20});
  todo.add({500, 503});
  MemorySink sink;
  run(space, todo, sink, {.threads = 2});
  EXPECT_EQ(sink.positions, todo);
}

TEST(Runner, TakesItsPositionsInPortionsUntilOneIsEmpty) {
  const Space space = toy_space();
  std::vector<IndexSet> portions = {IndexSet({0, 7}), IndexSet({100, 101}), IndexSet({50, 90})};
  IndexSet all;
  for (const IndexSet& portion : portions) all.add(portion);
  MemorySink sink;
  StopSignal stop;
  Progress progress;
  const auto supply = [&portions] {
    if (portions.empty()) return IndexSet();
    IndexSet next = portions.back();
    portions.pop_back();
    return next;
  };
  const RunReport report = run_points(space, supply, sink, {.threads = 3}, stop, progress);
  EXPECT_EQ(sink.positions, all);
  EXPECT_FALSE(report.stopped);
}

TEST(Runner, AStopKeepsWhatWasDone) {
  const Space space = toy_space();
  StopSignal stop;
  stop.request();
  Progress progress;
  MemorySink sink;
  const RunReport report =
      run_points(space, IndexSet({0, space.size()}), sink, {.threads = 2}, stop, progress);
  EXPECT_TRUE(report.stopped);
  EXPECT_TRUE(sink.flushed);
  EXPECT_EQ(sink.rows.size(), report.tally.rows());
}

TEST(Runner, AFailingSinkEndsTheRunAndIsHeardOf) {
  const Space space = toy_space();
  MemorySink sink;
  sink.fail_after = 100;
  EXPECT_THROW(run(space, IndexSet({0, space.size()}), sink, {.threads = 2}), std::runtime_error);
  EXPECT_LT(sink.rows.size(), space.size());
}

// Answers every other point with a recognisable outcome.
class HalfArchive final : public OutcomeArchive {
 public:
  bool find(const engine::Key& key, engine::Outcome& outcome) override {
    if (key.low % 2 == 0) return false;
    outcome = {};
    outcome.metrics.step_time = engine::Seconds{123};
    return true;
  }
};

TEST(Runner, TakesOutcomesFromTheArchiveFirst) {
  const Space space = toy_space();
  HalfArchive archive;
  MemorySink sink;
  const RunReport report =
      run(space, IndexSet({0, space.size()}), sink, {.threads = 2, .archive = &archive});
  std::uint64_t reused = 0;
  for (const auto& [index, time] : sink.rows) reused += time == 123;
  EXPECT_EQ(report.tally.reused, reused);
  EXPECT_GT(reused, 0u);
  EXPECT_LT(reused, sink.rows.size());
}

// Short requests, and in their midst some whose prompts are read token by token, for hours.
Space with_endless_points() {
  auto spec = read_sweep_text(R"(
base:
  task: request
  device: {name: toy, memory_capacity: 1e24 B, memory_bandwidth: 1 TB/s, peak: {bf16: 100 TFLOP/s}}
  model: {name: toy, layers: 2, hidden: 256, heads: 2, kv_heads: 2, head_dim: 128, intermediate: 512}
  serving: {max_num_batched_tokens: 1}
axes:
  - request.output: [4, 5, 6]
  - request.prompt: [1, 2_000_000_000, 3]
)",
                              "toy.yaml", Library{});
  EXPECT_TRUE(spec) << engine::to_text(spec.mistakes());
  return spec->space;
}

TEST(Runner, APointBeyondItsBudgetIsARowAndItsNeighboursAreNotLost) {
  const Space space = with_endless_points();
  for (const int threads : {1, 3}) {
    MemorySink sink;
    const RunReport report =
        run(space, IndexSet({0, space.size()}), sink, {.threads = threads, .point_budget = 1000});
    EXPECT_FALSE(report.stopped);
    EXPECT_EQ(sink.rows.size(), 9u);
    EXPECT_EQ(report.tally.by_status[std::size_t(engine::Status::ok)], 6u);
    EXPECT_EQ(report.tally.by_status[std::size_t(engine::Status::failed)], 3u);
  }
}

TEST(Runner, AStopIsHeardInsideALongPoint) {
  const Space space = with_endless_points();
  StopSignal stop;
  Progress progress;
  MemorySink sink;
  std::thread impatient([&] {
    while (progress.positions() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    // By now, or soon, the only worker is inside position 1, which has no end.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop.request();
  });
  const RunReport report = run_points(space, IndexSet({0, 3}), sink,
                                      {.threads = 1, .point_budget = 1e30}, stop, progress);
  impatient.join();
  EXPECT_TRUE(report.stopped);
  EXPECT_TRUE(sink.flushed);
  EXPECT_EQ(sink.positions.count(), 1u);
}

// Says that everything failed.
class FailedArchive final : public OutcomeArchive {
 public:
  bool find(const engine::Key&, engine::Outcome& outcome) override {
    outcome = {};
    outcome.status = engine::Status::failed;
    return true;
  }
};

TEST(Runner, WhatFailedBeforeIsTriedAgain) {
  const Space space = toy_space();
  FailedArchive archive;
  MemorySink sink;
  const RunReport report = run(space, IndexSet({0, 40}), sink, {.threads = 2, .archive = &archive});
  EXPECT_EQ(report.tally.reused, 0u);
  EXPECT_EQ(report.tally.by_status[std::size_t(engine::Status::ok)], 40u);
}

}  // namespace
}  // namespace sweep

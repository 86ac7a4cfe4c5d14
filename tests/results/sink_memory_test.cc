// What the sink keeps in memory does not grow with the number of points, parts or threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "results/parquet_sink.h"
#include "results/spare_chunks.h"
#include "tests/support/toy_rows.h"

namespace results {
namespace {

using tests::ToySweep;

// The most bytes in chunks at any moment of a run with so many threads and positions.
SinkMemory most_memory(std::uint64_t positions, int threads, std::uint64_t chunk) {
  const tests::TemporaryFolder temporary;
  const ToySweep toy{.positions = positions, .kernels = 6};
  RunFolder folder = RunFolder::open(temporary.path() / "run", toy.identity()).value();
  SinkMemory most;
  ParquetSink sink(folder, toy.schema(), {.points_per_part = 500});
  std::atomic<bool> done = false;
  std::thread watcher([&] {
    while (!done) {
      const SinkMemory now = sink.memory();
      most.open = std::max(most.open, now.open);
      most.encoding = std::max(most.encoding, now.encoding);
      most.spare = std::max(most.spare, now.spare);
      std::this_thread::yield();
    }
  });
  tests::run_toy(toy, sink, sweep::IndexSet(sweep::IndexRange{0, positions}), chunk, threads);
  done = true;
  watcher.join();
  EXPECT_EQ(sink.memory().open, 0u);
  EXPECT_EQ(sink.memory().encoding, 0u);
  return most;
}

// What the rows of a part take, with what is reserved beside them.
std::size_t part_bytes(std::size_t rows) {
  const ToySweep toy{.positions = rows, .kernels = 6};
  const SchemaInputs inputs = toy.schema();
  const RowLayout layout(inputs);
  ChunkBuffer chunk(layout);
  sweep::Point point;
  engine::Outcome outcome;
  for (std::uint64_t i = 0; i < rows; ++i) {
    toy.point(i, point);
    toy.outcome(i, outcome);
    chunk.add(point, outcome);
  }
  chunk.trim();
  return 2 * chunk.bytes();
}

TEST(SinkMemory, ManyThreadsAndPartsNeedNoMoreThanAFew) {
  // A part has 500 points, and a chunk of each of the threads may come on top.
  for (const int threads : {2, 16}) {
    const SinkMemory most = most_memory(12'000, threads, 20);
    EXPECT_LE(most.open, part_bytes(500 + 20)) << threads;
    EXPECT_LE(most.encoding, 4 * part_bytes(500 + 20)) << threads;
    EXPECT_LE(most.spare, std::size_t{48} << 20) << threads;
  }
}

TEST(SinkMemory, ChunksOfOnePointTakeWhatAPointTakes) {
  // As points that take long: each comes alone.
  EXPECT_LE(most_memory(1'500, 4, 1).open, part_bytes(500 + 1));
}

TEST(SinkMemory, SpareBuffersAreKeptUpToALimit) {
  const ToySweep toy{.positions = 100, .kernels = 3};
  const SchemaInputs inputs = toy.schema();
  const RowLayout layout(inputs);
  ChunkBuffer one(layout);
  sweep::Point point;
  engine::Outcome outcome;
  toy.point(1, point);
  toy.outcome(1, outcome);
  one.add(point, outcome);
  SpareChunks spare(layout, 3 * one.bytes());
  std::vector<ChunkPtr> chunks;
  for (int i = 0; i < 10; ++i) {
    chunks.push_back(spare.take());
    chunks.back()->add(point, outcome);
  }
  spare.give_back(std::move(chunks));
  EXPECT_GT(spare.bytes(), 0u);
  EXPECT_LE(spare.bytes(), 3 * one.bytes());
  const ChunkPtr again = spare.take();
  EXPECT_EQ(again->rows(), 0u);
  EXPECT_GT(again->bytes(), 0u) << "its memory is there already";
}

}  // namespace
}  // namespace results

// Many small parts become few large ones: the same rows, whatever the moment of a kill.
#include "results/compaction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "results/durable_file.h"
#include "results/failure.h"
#include "results/parquet_sink.h"
#include "results/run_folder.h"
#include "results/run_manifests.h"
#include "results/verify.h"
#include "sweep/space/shard.h"
#include "tests/support/run_tables.h"
#include "tests/support/toy_rows.h"

namespace results {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr const char* kTableNames[] = {"points", "kernels", "requests", "timeline"};
constexpr CompactionOptions kSmall{.points_per_part = 400, .details_per_part = 1'000'000};

class CompactionTest : public testing::Test {
 protected:
  const tests::TemporaryFolder scratch;
  const tests::ToySweep toy{.positions = 1000, .requests = 2};
  const fs::path run = scratch.path() / "run";

  void SetUp() override {
    for (std::uint32_t k = 1; k <= 3; ++k) write_shard(k);
    for (const char* table : kTableNames) before_.push_back(tests::table_rows(run, table));
  }

  void write_shard(std::uint32_t k) {
    RunFolder folder = RunFolder::open(run, toy.identity({k, 3})).value();
    ParquetSink sink(folder, toy.schema(), {.points_per_part = 50});
    tests::run_toy(toy, sink, sweep::shard_of(toy.positions, k, 3), 25);
  }

  void expect_same_rows() {
    for (std::size_t i = 0; i < before_.size(); ++i) {
      EXPECT_EQ(tests::table_rows(run, kTableNames[i]), before_[i]) << kTableNames[i];
    }
    EXPECT_TRUE(verify_run(run)->sound());
    EXPECT_TRUE(summarise(run)->complete());
  }

 private:
  std::vector<std::vector<std::string>> before_;
};

TEST_F(CompactionTest, TheSameRowsInFewerParts) {
  const sweep::Tally tally = summarise(run)->tally;
  const auto report = compact_run(run, kSmall);
  ASSERT_TRUE(report.ok());
  EXPECT_GT(report->parts_before, 15u);
  EXPECT_EQ(report->parts_after, 3u);
  EXPECT_EQ(summarise(run)->parts.size(), 3u);
  EXPECT_EQ(summarise(run)->shards.size(), 1u);
  EXPECT_EQ(summarise(run)->tally, tally);
  EXPECT_FALSE(fs::exists(run / ".compacted"));
  expect_same_rows();
  // There is nothing left to gain.
  EXPECT_EQ(compact_run(run, kSmall)->parts_after, 3u);
  expect_same_rows();
}

TEST_F(CompactionTest, ARunThatGoesOnFindsNothingToDo) {
  ASSERT_TRUE(compact_run(run, kSmall).ok());
  const RunFolder folder = RunFolder::open(run, toy.identity({2, 5})).value();
  EXPECT_EQ(folder.done().count(), toy.positions);
}

TEST_F(CompactionTest, WhatIsNotCompleteOrBeingWrittenStaysAsItIs) {
  {
    const RunFolder writer = RunFolder::open(run, toy.identity({2, 3})).value();
    EXPECT_FALSE(compact_run(run, kSmall).ok());
  }
  fs::remove(run / "manifest-2of3.jsonl");
  for (const char* table : kTableNames) {
    for (const auto& entry : fs::directory_iterator(run / table)) {
      if (entry.path().filename().string().starts_with("part-2of3")) fs::remove(entry.path());
    }
  }
  const auto refused = compact_run(run, kSmall);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.mistakes().front().what, HasSubstr("not complete"));
}

TEST_F(CompactionTest, OneThatWasKilledWhileItWroteGoesOn) {
  // As a kill leaves it: some new parts are there, and half a file.
  const fs::path saved = scratch.path() / "saved";
  fs::copy(run, saved, fs::copy_options::recursive);
  ASSERT_TRUE(compact_run(run, kSmall).ok());
  const Manifest whole = *inspect_manifest(run / manifest_name({}));
  const fs::path half = saved / ".compacted";
  fs::create_directories(half / "points");
  fs::create_directories(half / "kernels");
  fs::copy(run / "run.yaml", half / "run.yaml");
  std::ofstream(half / manifest_name({})) << to_line(*whole.header) << to_line(whole.parts[0]);
  for (const PartFile& file : whole.parts[0].files) {
    fs::create_directories((half / file.name).parent_path());
    fs::copy(run / file.name, half / file.name);
  }
  std::ofstream(half / "points" / ".part-1of1-000001.parquet.tmp") << "half";
  fs::remove_all(run);
  fs::rename(saved, run);
  EXPECT_EQ(compact_run(run, kSmall)->parts_after, 3u);
  expect_same_rows();
}

// The exchange is a row of renames; after any number of them somebody else does the rest.
TEST_F(CompactionTest, OneThatWasKilledWhileItExchangedIsFinishedByWhoeverOpensTheRun) {
  const fs::path old = scratch.path() / "old";
  fs::copy(run, old, fs::copy_options::recursive);
  ASSERT_TRUE(compact_run(run, kSmall).ok());
  const fs::path fresh = scratch.path() / "fresh";
  fs::rename(run, fresh);
  for (int renames = 0; renames <= 4; ++renames) {
    fs::copy(old, run, fs::copy_options::recursive);
    fs::copy(fresh, run / ".compacted", fs::copy_options::recursive);
    std::ofstream(run / ".compacted" / ".whole") << "";
    if (renames >= 1) fs::rename(run / "kernels", run / ".compacted" / "old-kernels");
    if (renames >= 2) fs::rename(run / ".compacted" / "kernels", run / "kernels");
    if (renames >= 3) fs::rename(run / "points", run / ".compacted" / "old-points");
    if (renames >= 4) fs::rename(run / ".compacted" / "points", run / "points");
    EXPECT_THROW(read_run(run), Failure) << "nobody believes what is between two states";
    if (renames % 2 == 0) {
      resume_exchange(run);
    } else {
      EXPECT_EQ(RunFolder::open(run, toy.identity()).value().done().count(), toy.positions);
    }
    expect_same_rows();
    EXPECT_EQ(summarise(run)->parts.size(), 3u);
    EXPECT_FALSE(fs::exists(run / ".compacted"));
    fs::remove_all(run);
  }
}

}  // namespace
}  // namespace results

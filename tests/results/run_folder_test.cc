#include "results/run_folder.h"
#include "results/run_manifests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <future>
#include <latch>

#include "engine/base/version.h"
#include "results/durable_file.h"
#include "results/failure.h"
#include "results/parquet_sink.h"
#include "results/reader.h"
#include "results/seal.h"
#include "sweep/space/shard.h"
#include "tests/support/run_tables.h"
#include "tests/support/toy_rows.h"

namespace results {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using tests::table_rows;
using tests::ToySweep;

class RunFolderTest : public testing::Test {
 protected:
  const tests::TemporaryFolder temporary;
  const fs::path run = temporary.path() / "run";
  const ToySweep toy{.positions = 1000, .requests = 3};
  const sweep::IndexSet all{sweep::IndexRange{0, 1000}};

  RunFolder open(Shard shard = {}) {
    auto folder = RunFolder::open(run, toy.identity(shard));
    EXPECT_TRUE(folder.ok()) << engine::to_text(folder.mistakes());
    return std::move(folder).value();
  }
  std::string mistake_of(const RunIdentity& identity) {
    const auto folder = RunFolder::open(run, identity);
    EXPECT_FALSE(folder.ok());
    return engine::to_text(folder.mistakes());
  }
  // Runs what is left; returns what the folder had to say first.
  std::vector<std::string> resume() {
    RunFolder folder = open();
    ParquetSink sink(folder, toy.schema(), {.points_per_part = 200});
    tests::run_toy(toy, sink, all.minus(folder.done()));
    return folder.notices();
  }
  // What stops a run that must not touch the folder.
  std::string failure() {
    try {
      open();
    } catch (const Failure& failure) {
      return failure.what();
    }
    return "no failure";
  }
  void expect_whole() {
    const tests::TemporaryFolder other;
    RunFolder folder = RunFolder::open(other.path() / "r", toy.identity()).value();
    ParquetSink sink(folder, toy.schema());
    tests::run_toy(toy, sink, all);
    for (const char* table : {"points", "kernels", "requests", "timeline"}) {
      EXPECT_EQ(table_rows(run, table), table_rows(other.path() / "r", table)) << table;
    }
    const auto summary = summarise(run);
    EXPECT_EQ(summary->tally.positions(), 1000u);
    EXPECT_TRUE(summary->complete());
  }
  fs::path part(Table table, int number) const {
    return run / part_name(table, {}, std::uint64_t(number));
  }
};

TEST_F(RunFolderTest, AFinishedRunHasNothingLeft) {
  resume();
  const RunFolder folder = open();
  EXPECT_EQ(folder.done(), all);
  EXPECT_EQ(folder.tally().rows(), 900u);
  EXPECT_TRUE(folder.notices().empty());
  EXPECT_EQ(unsealed_text(*read_file(run / "run.yaml")), "sweep: toy\n");
}

TEST_F(RunFolderTest, GoingOnWithRowsOfAnotherBuildIsSaid) {
  resume();
  Manifest manifest = *inspect_manifest(run / manifest_name({}));
  manifest.header->program_commit = "8d535a7c01f2";
  rewrite_manifest(run, {}, manifest);
  ASSERT_EQ(open().notices().size(), 1u);
  EXPECT_THAT(open().notices().front(),
              HasSubstr("another build of the program (commit 8d535a7c01f2"));
}

TEST_F(RunFolderTest, AnyStepOfMakingAFolderMayBeTheLast) {
  using Step = std::function<void()>;
  const std::vector<Step> steps{
      [&] { fs::create_directories(run); },
      [&] { std::ofstream(run / ".run.lock"); },
      [&] { std::ofstream(run / ".manifest-1of1.jsonl.lock"); },
      [&] { std::ofstream(run / ".run.yaml.1-2.tmp") << "sweep: t"; },
      [&] { fs::rename(run / ".run.yaml.1-2.tmp", run / "run.yaml"); },
      [&] { std::ofstream(run / "run.yaml") << sealed_text("sweep: toy\n"); },
      [&] { fs::create_directories(run / "points"); },
      [&] { fs::create_directories(run / "kernels"); },
      [&] { std::ofstream(run / ".manifest-1of1.jsonl.1-2.tmp") << "{"; },
  };
  for (std::size_t last = 0; last < steps.size(); ++last) {
    fs::remove_all(run);
    for (std::size_t i = 0; i <= last; ++i) steps[i]();
    resume();
    EXPECT_TRUE(summarise(run)->complete()) << last;
    for (const auto& entry : fs::directory_iterator(run)) {
      EXPECT_FALSE(entry.path().string().ends_with(".tmp")) << last << ' ' << entry.path();
    }
  }
  expect_whole();
}

TEST_F(RunFolderTest, ManyShardsStartAtTheSameMoment) {
  constexpr std::uint32_t kShards = 12;
  std::vector<std::future<std::string>> starts;
  std::latch together(kShards);
  for (std::uint32_t k = 1; k <= kShards; ++k) {
    starts.push_back(std::async(std::launch::async, [&, k]() -> std::string {
      together.arrive_and_wait();
      auto folder = RunFolder::open(run, toy.identity({k, kShards}));
      if (!folder.ok()) return engine::to_text(folder.mistakes());
      ParquetSink sink(*folder, toy.schema());
      tests::run_toy(toy, sink, sweep::shard_of(toy.positions, k, kShards));
      return "";
    }));
  }
  for (auto& start : starts) EXPECT_EQ(start.get(), "");
  expect_whole();
}

TEST_F(RunFolderTest, OfDifferentRunsStartedAtTheSameMomentOneWins) {
  constexpr int kRuns = 8;
  std::vector<std::future<bool>> starts;
  std::latch together(kRuns);
  for (int i = 0; i < kRuns; ++i) {
    starts.push_back(std::async(std::launch::async, [&, i] {
      ToySweep other = toy;
      other.spec = "sweep: " + std::to_string(i) + "\n";
      together.arrive_and_wait();
      return RunFolder::open(run, other.identity({std::uint32_t(i + 1), kRuns})).ok();
    }));
  }
  int winners = 0;
  for (auto& start : starts) winners += start.get() ? 1 : 0;
  EXPECT_EQ(winners, 1);
  EXPECT_EQ(summarise(run)->shards.size(), 1u);
}

TEST_F(RunFolderTest, ALostRunYamlIsWrittenAgain) {
  resume();
  fs::remove(run / "run.yaml");
  EXPECT_THAT(resume(), ElementsAre("run.yaml was missing or damaged, and was written again"));
  std::ofstream(run / "run.yaml", std::ios::app) << "# edited\n";
  EXPECT_THAT(resume(), ElementsAre("run.yaml was missing or damaged, and was written again"));
  EXPECT_EQ(unsealed_text(*read_file(run / "run.yaml")), toy.spec);
  EXPECT_TRUE(resume().empty());
}

TEST_F(RunFolderTest, LinksInPlaceOfItsOwnFilesAreNotFollowed) {
  const fs::path precious = temporary.path() / "precious";
  std::ofstream(precious) << "mine";
  for (const char* name : {".run.lock", ".manifest-1of1.jsonl.lock"}) {
    fs::create_directories(run);
    fs::create_symlink(precious, run / name);
    EXPECT_THAT(failure(), HasSubstr("a symbolic link stands where")) << name;
    fs::remove_all(run);
  }
  fs::create_directories(run);
  fs::create_symlink(precious, hidden_name(run / "run.yaml"));
  resume();
  expect_whole();
  EXPECT_EQ(read_file(precious), "mine");
}

TEST_F(RunFolderTest, ATornManifestLineIsDropped) {
  resume();
  const fs::path manifest = run / "manifest-1of1.jsonl";
  fs::resize_file(manifest, fs::file_size(manifest) - 7);
  // The last part is now an orphan, and is written again.
  EXPECT_THAT(resume(), ElementsAre("removed 4 unfinished file(s) of shard 1of1"));
  expect_whole();
}

TEST_F(RunFolderTest, WhatCannotBeReadIsLeftAlone) {
  resume();
  const fs::path manifest = run / "manifest-1of1.jsonl";
  const std::string text = *read_file(manifest);
  const std::size_t second = text.find('\n') + 1;
  const auto files = [&] { return table_files(run, "points").size(); };
  const std::size_t before = files();
  const auto expect_stop = [&](const std::string& broken, const char* why) {
    std::ofstream(manifest) << broken;
    EXPECT_THAT(failure(), HasSubstr(why));
    EXPECT_EQ(*read_file(manifest), broken);
    EXPECT_EQ(files(), before);
  };
  expect_stop("", "manifest-1of1.jsonl:1: the line is damaged");
  expect_stop(text.substr(second), "manifest-1of1.jsonl:1: the line is damaged");
  expect_stop("x" + text, "manifest-1of1.jsonl:1: the line is damaged");
  expect_stop(text.substr(0, second) + "what\n" + text.substr(second), "manifest-1of1.jsonl:2:");
  expect_stop(text + text.substr(second), "another line has its number");
  std::string newer = text.substr(0, second);
  newer.replace(newer.find(":3,"), 3, ":4,");
  newer = sealed_line(newer.substr(0, newer.find(",\"line_xxh3")) + "}") + "\n";
  expect_stop(newer + text.substr(second), "was written by a newer version of the program");
  fs::remove(manifest);
  EXPECT_THAT(failure(), HasSubstr("the manifest is missing, though there are parts"));
  EXPECT_EQ(files(), before);
}

TEST_F(RunFolderTest, GarbageAtTheEndOfTheManifestIsDropped) {
  resume();
  std::ofstream(run / "manifest-1of1.jsonl", std::ios::app) << std::string(100, '\0');
  EXPECT_TRUE(resume().empty());
  expect_whole();
}

TEST_F(RunFolderTest, FilesNoLineNamesAreRemoved) {
  resume();
  fs::copy(part(Table::points, 0), part(Table::points, 77));
  fs::copy(part(table_named("kernels"), 0), hidden_name(part(table_named("kernels"), 78)));
  fs::copy(part(table_named("timeline"), 0), part(table_named("timeline"), 79));
  EXPECT_THAT(resume(), ElementsAre("removed 3 unfinished file(s) of shard 1of1"));
  EXPECT_FALSE(fs::exists(part(Table::points, 77)));
  expect_whole();
}

TEST_F(RunFolderTest, AMissingPartIsDoneAgain) {
  resume();
  fs::remove(part(table_named("kernels"), 1));
  EXPECT_THAT(resume(),
              ElementsAre("kernels/part-1of1-000001.parquet is missing: its points are done again",
                          "removed 3 unfinished file(s) of shard 1of1"));
  EXPECT_TRUE(resume().empty());
  fs::remove(part(table_named("requests"), 0));
  EXPECT_THAT(resume()[0], HasSubstr("requests/part-1of1-000000.parquet is missing"));
  expect_whole();
}

TEST_F(RunFolderTest, ATruncatedPartIsDoneAgain) {
  resume();
  fs::resize_file(part(Table::points, 0), 1000);
  EXPECT_THAT(resume()[0], HasSubstr("points/part-1of1-000000.parquet has 1000 bytes, not "));
  expect_whole();
}

TEST_F(RunFolderTest, NumbersOfLostPartsAreNotUsedAgain) {
  resume();
  const std::size_t parts = summarise(run)->parts.size();
  fs::remove(part(Table::points, int(parts) - 1));
  resume();
  EXPECT_EQ(summarise(run)->parts.back().sequence, parts);
}

TEST_F(RunFolderTest, TwoWritersOfAShardAreRefused) {
  const RunFolder first = open();
  EXPECT_EQ(mistake_of(toy.identity()),
            run.string() +
                ": error: another process is writing this shard of the run\n"
                "  hint: wait for it, or choose another folder with -o DIR\n");
}

TEST_F(RunFolderTest, TwoShardsOfOneSplitWriteAtOnce) {
  const RunFolder first = open({1, 2});
  const RunFolder second = open({2, 2});
  EXPECT_THAT(mistake_of(toy.identity()),
              HasSubstr("another process is writing shard 1/2 of this run"));
}

TEST_F(RunFolderTest, AShardLeavesItsNeighboursFilesAlone) {
  const fs::path neighbours = run / part_name(Table::points, {2, 2}, 0);
  open({2, 2});
  std::ofstream(neighbours) << "being written";
  EXPECT_TRUE(open({1, 2}).notices().empty());
  EXPECT_TRUE(fs::exists(neighbours));
}

TEST_F(RunFolderTest, AShardedRunIsFinishedInOnePiece) {
  {
    RunFolder folder = open({2, 3});
    ParquetSink sink(folder, toy.schema());
    tests::run_toy(toy, sink, sweep::shard_of(toy.positions, 2, 3));
  }
  std::ofstream(hidden_name(run / part_name(Table::points, {2, 3}, 9))) << "half";
  EXPECT_THAT(resume(), ElementsAre("removed 1 unfinished file(s) of shard 2of3"));
  expect_whole();
}

TEST_F(RunFolderTest, AnotherSpecIsRefusedAndSaysWhatDiffers) {
  resume();
  RunIdentity other = toy.identity();
  other.run_yaml = other.spec_hash = "sweep: other\n";
  other.positions = 2000;
  EXPECT_EQ(mistake_of(other),
            run.string() +
                ": error: the folder holds a run of another spec (1000 positions, now 2000); in "
                "run.yaml line 1 was 'sweep: toy' and is 'sweep: other'\n"
                "  hint: choose a new folder with -o DIR; --reuse " +
                run.string() + " takes over its finished points\n");
}

// What decides the points comes with `base`: a name before it that differs as well is not why.
TEST_F(RunFolderTest, AnotherSpecIsNotAnotherBecauseOfItsName) {
  RunIdentity one = toy.identity(), other = toy.identity();
  one.run_yaml = "name: a\nbase:\n  seed: 1\n";
  other.run_yaml = "name: b\nbase:\n  seed: 2\n";
  other.spec_hash = "other";
  {
    const auto folder = RunFolder::open(run, one);
    ASSERT_TRUE(folder);
  }
  EXPECT_THAT(mistake_of(other),
              HasSubstr("in run.yaml line 3 was '  seed: 1' and is '  seed: 2'"));
}

// The same points, of files that lie elsewhere now: the run goes on, and says where they are.
TEST_F(RunFolderTest, GoesOnWithFilesThatWereMoved) {
  RunIdentity before = toy.identity(), now = toy.identity();
  before.run_yaml = "base:\n  trace: /old\n";
  now.run_yaml = "base:\n  trace: /new\n";
  {
    const auto folder = RunFolder::open(run, before);
    ASSERT_TRUE(folder);
  }
  {
    const auto folder = RunFolder::open(run, now);
    ASSERT_TRUE(folder);
    EXPECT_TRUE(folder->notices().empty());
  }
  EXPECT_EQ(unsealed_text(*read_file(run / "run.yaml")), now.run_yaml);
}

TEST_F(RunFolderTest, AnotherModelVersionIsRefused) {
  open();
  std::ofstream(run / "manifest-1of1.jsonl")
      << to_line(ManifestHeader{.spec_hash = toy.spec, .model_version = 0, .positions = 1000});
  EXPECT_THAT(mistake_of(toy.identity()),
              HasSubstr("the run was made with model version 0, this program has " +
                        std::to_string(engine::kModelVersion)));
}

TEST_F(RunFolderTest, AFolderOfOtherThingsIsRefused) {
  fs::create_directories(run);
  std::ofstream(run / "thesis.tex") << "years of work";
  EXPECT_THAT(mistake_of(toy.identity()), HasSubstr("not empty and not a run folder"));
}

TEST_F(RunFolderTest, SummariseRefusesWhatIsNoRun) {
  fs::create_directories(run);
  EXPECT_EQ(engine::to_text(summarise(run).mistakes()),
            run.string() +
                ": error: not a run folder: it has no manifest\n"
                "  hint: give the folder of `run -o DIR`\n");
}

}  // namespace
}  // namespace results

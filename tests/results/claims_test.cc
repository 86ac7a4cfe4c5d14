// Workers that share a run: what each takes, and what becomes of it after a kill.
#include "results/claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "results/durable_file.h"
#include "results/failure.h"
#include "results/parquet_sink.h"
#include "results/run_folder.h"
#include "results/run_manifests.h"
#include "sweep/space/shard.h"
#include "tests/support/run_tables.h"
#include "tests/support/toy_rows.h"

namespace results {
namespace {

using testing::HasSubstr;

const tests::ToySweep kToy{.positions = 4000};

RunIdentity worker(std::uint32_t number, std::uint32_t count = 4) {
  RunIdentity identity = kToy.identity({number, count});
  identity.sharing = Sharing::taken;
  return identity;
}

// Everything a worker can get, or `most` pieces; where it is killed, they are not done.
sweep::IndexSet work(const std::filesystem::path& run, std::uint32_t number, int most = 1000) {
  RunFolder folder = RunFolder::open(run, worker(number)).value();
  ParquetSink sink(folder, kToy.schema());
  Claims claims(run, folder.identity().shard, kToy.positions);
  sweep::IndexSet mine = claims.earlier();
  for (int piece = 0; piece < most; ++piece) mine.add(claims.next());
  tests::run_toy(kToy, sink, mine.minus(folder.done()));
  return mine;
}

TEST(Claims, WorkersAtTheSameTimeDoEveryPositionOnce) {
  const tests::TemporaryFolder scratch;
  const auto run = scratch.path() / "run";
  {
    std::vector<std::jthread> workers;
    for (std::uint32_t number = 1; number <= 4; ++number) {
      workers.emplace_back([&run, number] { work(run, number); });
    }
  }
  // That no position is claimed twice is what reading the manifests checks.
  EXPECT_TRUE(summarise(run)->complete());
}

TEST(Claims, AWorkerThatWasKilledGoesOnWithItsOwnPieces) {
  const tests::TemporaryFolder scratch;
  const auto run = scratch.path() / "run";
  sweep::IndexSet taken;
  {
    const RunFolder folder = RunFolder::open(run, worker(2)).value();
    Claims claims(run, {2, 4}, kToy.positions);
    taken.add(claims.next());
    taken.add(claims.next());
  }
  const sweep::IndexSet others = work(run, 1);
  EXPECT_EQ(others.minus(taken), others) << "nobody else takes them";
  EXPECT_FALSE(summarise(run)->complete());
  EXPECT_EQ(work(run, 2), taken);
  EXPECT_TRUE(summarise(run)->complete());
}

TEST(Claims, ARunThatIsNotSplitDoesWhatWorkersLeave) {
  const tests::TemporaryFolder scratch;
  const auto run = scratch.path() / "run";
  work(run, 3, 5);
  {
    RunFolder folder = RunFolder::open(run, kToy.identity()).value();
    EXPECT_GT(folder.done().count(), 0u);
    ParquetSink sink(folder, kToy.schema());
    tests::run_toy(kToy, sink, sweep::IndexSet({0, kToy.positions}).minus(folder.done()));
  }
  EXPECT_TRUE(summarise(run)->complete());
  work(run, 1);  // finds nothing that is not done
  EXPECT_TRUE(summarise(run)->complete());
}

// Shares that are fixed and those that are taken would overlap.
TEST(Claims, FixedAndTakenSharesDoNotWorkSideBySide) {
  const tests::TemporaryFolder scratch;
  const auto run = scratch.path() / "run";
  {
    const RunFolder takes = RunFolder::open(run, worker(1)).value();
    const auto refused = RunFolder::open(run, kToy.identity({2, 4}));
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.mistakes().front().what, HasSubstr("is writing shard 1/4"));
    EXPECT_TRUE(RunFolder::open(run, worker(2)).ok());
  }
  const RunFolder fixed = RunFolder::open(run, kToy.identity({2, 4})).value();
  EXPECT_FALSE(has_claims(run, 4));
  EXPECT_FALSE(RunFolder::open(run, worker(1)).ok());
}

TEST(Claims, ADamagedFileIsAFailureAndNotAPieceForTwo) {
  const tests::TemporaryFolder scratch;
  const auto run = scratch.path() / "run";
  const RunFolder folder = RunFolder::open(run, worker(1)).value();
  Claims claims(run, {1, 4}, kToy.positions);
  EXPECT_FALSE(claims.next().empty());
  const std::string sound = *read_file(run / ".claims-4");
  for (const std::string& damaged :
       {sound.substr(0, 50), std::string(sound.size(), 'x'), std::string(sound.size(), '9')}) {
    std::ofstream(run / ".claims-4") << damaged;
    EXPECT_THROW(claims.next(), Failure);
    EXPECT_THROW(Claims(run, {1, 4}, kToy.positions).earlier(), Failure);
  }
}

TEST(Claims, WorkersKnowWhatWasDoneBeforeThemAndDoNotReadWhatOthersDo) {
  const tests::TemporaryFolder scratch;
  const auto run = scratch.path() / "run";
  {
    RunFolder folder = RunFolder::open(run, kToy.identity()).value();
    ParquetSink sink(folder, kToy.schema());
    tests::run_toy(kToy, sink, sweep::IndexSet({100, 900}));
  }
  work(run, 1, 3);
  const RunFolder second = RunFolder::open(run, worker(2)).value();
  EXPECT_EQ(second.done(), sweep::IndexSet({100, 900}));
  // A spec that is not this one is refused all the same.
  RunIdentity other = worker(3);
  other.spec_hash = "another";
  other.positions = 17;
  EXPECT_THAT(RunFolder::open(run, other).mistakes().front().what, HasSubstr("another spec"));
}

TEST(Claims, AGridOfNothingHasNothingToTake) {
  const tests::TemporaryFolder scratch;
  start_claims(scratch.path(), 8, 0, {});
  EXPECT_TRUE(Claims(scratch.path(), {1, 8}, 0).next().empty());
}

}  // namespace
}  // namespace results

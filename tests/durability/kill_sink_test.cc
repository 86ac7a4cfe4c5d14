// A writer killed at any moment, again and again, ends with every row exactly once.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "engine/base/random.h"
#include "results/parquet_sink.h"
#include "tests/support/run_tables.h"
#include "tests/support/toy_rows.h"

namespace results {
namespace {

using tests::table_rows;
using tests::ToySweep;

constexpr int kKills = 20;

// In the child: goes on with the run, and leaves without any destructor, as a kill would.
[[noreturn]] void go_on(const std::filesystem::path& run, const ToySweep& toy) {
  auto folder = RunFolder::open(run, toy.identity());
  if (!folder.ok()) _exit(2);
  try {
    ParquetSink sink(*folder, toy.schema(), {.points_per_part = 150});
    const sweep::IndexSet all(sweep::IndexRange{0, toy.positions});
    tests::run_toy(toy, sink, all.minus(folder->done()), 50, 2);
  } catch (const std::exception&) {
    _exit(3);
  }
  _exit(0);
}

// The exit status of a child that is killed after `delay`, or that finishes first.
int run_and_kill(const std::filesystem::path& run, const ToySweep& toy,
                 std::chrono::microseconds delay) {
  const pid_t child = fork();
  if (child == 0) go_on(run, toy);
  std::this_thread::sleep_for(delay);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST(KillSink, TwentyKillsLoseAndDoubleNothing) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer cannot follow a fork that starts threads";
#endif
  const tests::TemporaryFolder temporary;
  const ToySweep toy{.positions = 20000, .requests = 2};
  const auto killed = temporary.path() / "killed";
  int kills = 0;
  for (std::uint64_t attempt = 0; kills < kKills && attempt < 200; ++attempt) {
    const double chance = engine::uniform(11, engine::Stream::sampling, attempt);
    const int status = run_and_kill(killed, toy, std::chrono::microseconds(int(80'000 * chance)));
    if (WIFEXITED(status)) {
      ASSERT_EQ(WEXITSTATUS(status), 0);
      break;
    }
    ++kills;
  }
  int status = 0;
  const pid_t child = fork();
  if (child == 0) go_on(killed, toy);
  waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);

  const auto whole = temporary.path() / "whole";
  RunFolder folder = RunFolder::open(whole, toy.identity()).value();
  ParquetSink sink(folder, toy.schema());
  tests::run_toy(toy, sink, sweep::IndexSet(sweep::IndexRange{0, toy.positions}));
  for (const char* table : {"points", "kernels", "requests", "timeline"}) {
    EXPECT_EQ(table_rows(killed, table), table_rows(whole, table)) << table;
  }
  EXPECT_EQ(summarise(killed)->tally, summarise(whole)->tally);
  RecordProperty("kills", kills);
  EXPECT_GE(kills, 5) << "the run is too short to be killed";
}

}  // namespace
}  // namespace results

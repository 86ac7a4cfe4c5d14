// A disk that fills up stops the run with a clear message and costs nothing that was committed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "results/durable_file.h"
#include "results/failure.h"
#include "results/parquet_sink.h"
#include "tests/support/run_tables.h"
#include "tests/support/toy_rows.h"

namespace results {
namespace {

using tests::table_rows;
using tests::ToySweep;

// Writes the first half in small parts, then hits a limit on the size of a file.
[[noreturn]] void fill_the_disk(const std::filesystem::path& run, const ToySweep& toy) {
  signal(SIGXFSZ, SIG_IGN);
  auto folder = RunFolder::open(run, toy.identity());
  std::string message = "no failure";
  try {
    ParquetSink sink(*folder, toy.schema(), {.points_per_part = 200});
    tests::run_toy(toy, sink, sweep::IndexSet(sweep::IndexRange{0, toy.positions / 2}), 50, 1);
    const rlimit limit{20'000, 20'000};
    setrlimit(RLIMIT_FSIZE, &limit);
    tests::run_toy(toy, sink, sweep::IndexSet(sweep::IndexRange{toy.positions / 2, toy.positions}),
                   50, 1);
  } catch (const Failure& failure) {
    message = failure.what();
  }
  std::ofstream(run.parent_path() / "message") << message;
  _exit(0);
}

TEST(DiskFull, KeepsWhatWasCommitted) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer cannot follow a fork that starts threads";
#endif
  const tests::TemporaryFolder temporary;
  const ToySweep toy{.positions = 4000};
  const auto run = temporary.path() / "run";
  const pid_t child = fork();
  if (child == 0) fill_the_disk(run, toy);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  const std::string message = *read_file(temporary.path() / "message");
  EXPECT_THAT(message, testing::HasSubstr(": File too large"));
  EXPECT_THAT(message, testing::HasSubstr("hint: make room on that disk, then run the same command "
                                          "again; a sweep goes on where it was"));

  const auto before = summarise(run);
  EXPECT_GE(before->done.count(), toy.positions / 2);
  EXPECT_LT(before->done.count(), toy.positions);
  EXPECT_EQ(tests::table_indices(run, "points").size(), before->tally.rows());

  RunFolder folder = RunFolder::open(run, toy.identity()).value();
  ParquetSink sink(folder, toy.schema());
  const sweep::IndexSet all(sweep::IndexRange{0, toy.positions});
  tests::run_toy(toy, sink, all.minus(folder.done()));
  const auto whole = temporary.path() / "whole";
  RunFolder other = RunFolder::open(whole, toy.identity()).value();
  ParquetSink other_sink(other, toy.schema());
  tests::run_toy(toy, other_sink, all);
  EXPECT_EQ(table_rows(run, "points"), table_rows(whole, "points"));
  EXPECT_EQ(table_rows(run, "kernels"), table_rows(whole, "kernels"));
}

}  // namespace
}  // namespace results

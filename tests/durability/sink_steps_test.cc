// A writer killed at each named step of the sink, at the first batch and at later ones, alone or beside
// another shard, ends with every row exactly once.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "results/parquet_sink.h"
#include "results/verify.h"
#include "sweep/space/shard.h"
#include "tests/support/run_tables.h"
#include "tests/support/toy_rows.h"

namespace results {
namespace {

using tests::table_rows;
using tests::ToySweep;

constexpr SinkStep kSteps[] = {SinkStep::encoded, SinkStep::written, SinkStep::details_shown,
                               SinkStep::points_shown, SinkStep::recorded};
constexpr const char* kTableNames[] = {"points", "kernels", "requests", "timeline"};

void go_on(const std::filesystem::path& run, const ToySweep& toy, Shard shard,
           const SinkOptions& options) {
  RunFolder folder = RunFolder::open(run, toy.identity(shard)).value();
  ParquetSink sink(folder, toy.schema(), options);
  const sweep::IndexSet mine = sweep::shard_of(toy.positions, shard.number, shard.count);
  tests::run_toy(toy, sink, mine.minus(folder.done()), 50, 2);
}

// In a child that kills itself when it comes to `step` for the `nth` time. Says whether it did.
bool killed_at(SinkStep step, int nth, const std::filesystem::path& run, const ToySweep& toy,
               Shard shard) {
  const pid_t child = fork();
  if (child == 0) {
    int left = nth;
    go_on(run, toy, shard, {.points_per_part = 200, .at_step = [&](SinkStep now) {
                              if (now == step && --left == 0) kill(getpid(), SIGKILL);
                            }});
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

class SinkSteps : public testing::Test {
 protected:
  const tests::TemporaryFolder temporary;
  const ToySweep toy{.positions = 1000, .requests = 2};
  const std::filesystem::path whole = temporary.path() / "whole";

  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "the thread sanitizer cannot follow a fork that starts threads";
#endif
    go_on(whole, toy, {}, {});
  }
  void expect_whole(const std::filesystem::path& run) {
    for (const char* table : kTableNames) {
      EXPECT_EQ(table_rows(run, table), table_rows(whole, table)) << table;
    }
    EXPECT_TRUE(verify_run(run)->sound());
    EXPECT_TRUE(verify_run(run)->notices.empty());
    EXPECT_TRUE(summarise(run)->complete());
  }
};

TEST_F(SinkSteps, AnyOfThemMayBeTheLast) {
  for (const SinkStep step : kSteps) {
    const auto run = temporary.path() / ("run" + std::to_string(int(step)));
    EXPECT_TRUE(killed_at(step, 1, run, toy, {})) << int(step);
    EXPECT_TRUE(verify_run(run)->sound()) << "a kill is no damage";
    killed_at(step, 2, run, toy, {});
    go_on(run, toy, {}, {});
    expect_whole(run);
  }
}

TEST_F(SinkSteps, OfAShardBesideAnother) {
  for (const SinkStep step : kSteps) {
    const auto run = temporary.path() / ("shards" + std::to_string(int(step)));
    go_on(run, toy, {2, 2}, {.points_per_part = 200});
    EXPECT_TRUE(killed_at(step, 1, run, toy, {1, 2})) << int(step);
    go_on(run, toy, {}, {});  // in one piece
    expect_whole(run);
  }
}

}  // namespace
}  // namespace results

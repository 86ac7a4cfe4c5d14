#include "tools/cli/progress_line.h"

#include <gtest/gtest.h>

namespace tools {
namespace {

TEST(ProgressLine, OfAFirstCallCountsFromNothing) {
  sweep::Progress progress;
  sweep::Tally tally;
  tally.by_status[std::size_t(engine::Status::ok)] = 3;
  tally.by_status[std::size_t(engine::Status::infeasible)] = 2;
  progress.add(tally);
  EXPECT_EQ(progress_line(progress, 0, 20, 2.5),
            " 25.0%  5 of 20  2 points/s  7.5 s left  ok 3  infeasible 2");
}

TEST(ProgressLine, OfAResumedRunCountsWhatIsDoneButPacesByThisCall) {
  sweep::Progress progress;
  sweep::Tally tally;
  tally.by_status[std::size_t(engine::Status::ok)] = 5;
  progress.add(tally);
  EXPECT_EQ(progress_line(progress, 10, 20, 2.5),
            " 75.0%  15 of 20  2 points/s  2.5 s left  ok 5  before 10");
}

}  // namespace
}  // namespace tools

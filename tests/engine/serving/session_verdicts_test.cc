// What a run of sessions tells of whether the system keeps up with them.
#include <gtest/gtest.h>

#include <deque>
#include <utility>
#include <vector>

#include "engine/base/random.h"
#include "engine/serving/figures/run_judge.h"

namespace engine {
namespace {

// Sessions of `calls` requests, each of which waits for the one before it, at `load` times what one server can do, as forty moments.
std::vector<Snapshot> random_sessions(double load, int calls, int sessions, std::uint64_t seed) {
  std::vector<Snapshot> snapshots;
  std::deque<int> left;
  Snapshot now;
  const double come = load / calls;
  for (std::uint64_t n = 0; now.opened < sessions; ++n) {
    now.time += exponential(seed, Stream::arrivals, n) / (come + 1);
    if (uniform(seed, Stream::sampling, n) < come / (come + 1)) {
      now.opened += 1, now.arrived += 1;
      left.push_back(calls);
      if (int(now.opened) % (sessions / 40) == 0) snapshots.push_back(now);
    } else if (!left.empty()) {
      now.finished += 1;
      const int rest = left.front() - 1;
      left.pop_front();
      if (rest > 0) {
        now.arrived += 1;
        left.push_back(rest);
      } else {
        now.closed += 1;
      }
    }
  }
  return snapshots;
}

// A session has one request inside at a time, however many it brings. So it takes as many sessions to tell whether a tenth too many come as
// it would take single requests, and until then nothing is said.
TEST(RunJudge, SessionsKeepUpOnceTheySeemTo) {
  const auto verdicts = [](double load, int calls, int sessions) {
    int overloaded = 0, bounded = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      const std::vector<Snapshot> snapshots = random_sessions(load, calls, sessions, seed);
      const Saturation found = saturation_of({.kind = RunKind::open,
                                              .settled = true,
                                              .snapshots = snapshots,
                                              .queue_share = 1,
                                              .offered_share = load,
                                              .restless = {.arrivals = double(calls)},
                                              .requests_of_session = double(calls)});
      overloaded += found == Saturation::overloaded;
      bounded += found == Saturation::backlogged;
    }
    return std::pair(overloaded, bounded);
  };
  for (const int calls : {2, 8}) {
    for (const int sessions : {80, 400, 2000}) {
      EXPECT_LE(verdicts(1.1, calls, sessions).second, 2) << calls << " " << sessions;
      EXPECT_LE(verdicts(0.9, calls, sessions).first, 2) << calls << " " << sessions;
    }
    EXPECT_GE(verdicts(1.1, calls, 6000).first, 36) << calls;
    EXPECT_GE(verdicts(0.9, calls, 12'000).second, 36) << calls;
  }
}

// A run that is measured whole, as benchmark clients do, is no exception.
TEST(RunJudge, SessionsThatPileUpAreSeenInWholeRuns) {
  const auto verdict = [](double load, std::uint64_t seed) {
    const std::vector<Snapshot> snapshots = random_sessions(load, 6, 800, seed);
    return saturation_of({.kind = RunKind::whole,
                          .settled = true,
                          .snapshots = snapshots,
                          .queue_share = 1,
                          .restless = {.arrivals = 6},
                          .requests_of_session = 6});
  };
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_EQ(verdict(1.5, seed), Saturation::overloaded) << seed;
    EXPECT_EQ(verdict(0.8, seed), Saturation::backlogged) << seed;
  }
}

}  // namespace
}  // namespace engine

// Which part of a run is measured: events with times one can write down.
#include "engine/serving/figures/measurement.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace engine {
namespace {

// Requests arrive a second apart and stay for `service` seconds each. Follows the run until it is
// complete, or `most` requests have come and gone.
MeasuredPart open_run(RunWatch& watch, double service, int most) {
  int finished = 0;
  const auto finish = [&](double until) {
    for (; finished < most && finished + service <= until; ++finished) {
      watch.finished(finished, finished + service, true);
    }
  };
  for (int i = 0; i < most; ++i) {
    finish(i);
    if (watch.state() == RunWatch::State::complete) return watch.part(finished + service - 1);
    watch.arrived(i, true);
  }
  finish(most + service);
  return watch.part(most - 1 + service);
}

TEST(Measurement, BeginsWhenTwiceAsManyAreDoneAsAreInside) {
  RunWatch watch;
  watch.reset({.units = 100});
  // Ten are inside: at 30 s twenty are done.
  const MeasuredPart part = open_run(watch, 10.5, 100);
  EXPECT_TRUE(part.settled);
  EXPECT_EQ(part.from, 19 + 10.5);
  EXPECT_EQ(part.until, 99);  // the last arrival, not the last answer
  EXPECT_FALSE(part.all);
}

TEST(Measurement, BeginsWithATwentiethOfAllAtLeast) {
  RunWatch watch;
  watch.reset({.units = 100});
  // Nobody is inside for long: five of a hundred are enough.
  const MeasuredPart part = open_run(watch, 0.5, 100);
  EXPECT_TRUE(part.settled);
  EXPECT_EQ(part.from, 4.5);
}

TEST(Measurement, IsTheSecondHalfWhereTheSystemNeverFillsUp) {
  RunWatch watch;
  watch.reset({.units = 100, .endless = true});
  const MeasuredPart part = open_run(watch, 80, 100);
  EXPECT_FALSE(part.settled);
  EXPECT_EQ(part.from, 49);
  EXPECT_EQ(part.until, 99);
  // Of a load that ends, unless it finishes less there than with its drain.
  watch.reset({.units = 100});
  EXPECT_TRUE(open_run(watch, 80, 100).all);
}

// Full at 29.5 s, with eleven inside. A part of less than their ten seconds shows chance; one of more is measured.
TEST(Measurement, IsNotWhatALoadThatEndsLeavesOfAFullSystem) {
  RunWatch watch;
  watch.reset({.units = 35});
  EXPECT_TRUE(open_run(watch, 10.5, 35).all);
  watch.reset({.units = 45});
  const MeasuredPart part = open_run(watch, 10.5, 45);
  EXPECT_TRUE(part.settled);
  EXPECT_EQ(part.from, 29.5);
  // A stated window is as long as it is.
  watch.reset({.window = 2, .units = 35});
  EXPECT_EQ(open_run(watch, 10.5, 35).span(), 2);
}

TEST(Measurement, IsAllOfARunInWhichNothingIsFinishedBeforeTheLastArrival) {
  RunWatch watch;
  watch.reset({.units = 100});
  const MeasuredPart part = open_run(watch, 120, 100);
  EXPECT_TRUE(part.all);
  EXPECT_FALSE(part.settled);
  EXPECT_EQ(part.from, 0);
  EXPECT_EQ(part.until, 219);
}

TEST(Measurement, ObeysWhatIsStated) {
  RunWatch watch;
  watch.reset({.warmup = 12, .window = 30, .units = 100});
  MeasuredPart part = open_run(watch, 80, 100);
  EXPECT_TRUE(part.settled);
  EXPECT_EQ(part.from, 12);
  EXPECT_EQ(part.until, 42);
  // A window ends with the arrivals.
  watch.reset({.warmup = 12, .window = 500, .units = 100});
  EXPECT_EQ(open_run(watch, 1, 100).until, 99);
  // A warm-up that outlasts them leaves nothing.
  watch.reset({.warmup = 120, .units = 100});
  EXPECT_TRUE(open_run(watch, 1, 100).empty());
  // A window after an automatic warm-up.
  watch.reset({.window = 20, .units = 100});
  part = open_run(watch, 0.5, 100);
  EXPECT_EQ(part.from, 4.5);
  EXPECT_EQ(part.until, 24.5);
}

TEST(Measurement, OfAWholeRunIsAllOfIt) {
  RunWatch watch;
  watch.reset({.kind = RunKind::whole, .units = 100});
  const MeasuredPart part = open_run(watch, 10, 100);
  EXPECT_EQ(part.from, 0);
  EXPECT_EQ(part.until, 109);
  EXPECT_TRUE(part.all);
  EXPECT_FALSE(part.settled);
  EXPECT_TRUE(part.holds_arrival(0));
  EXPECT_TRUE(part.holds_answer(109));
}

TEST(Measurement, OfASingleRequestIsAllOfIt) {
  RunWatch watch;
  watch.reset({.units = 1});
  const MeasuredPart part = open_run(watch, 10, 1);
  EXPECT_TRUE(part.all);
  EXPECT_EQ(part.until, 10);
}

TEST(Measurement, AnEndlessRunIsCompleteWhenItsRequestsAre) {
  RunWatch watch;
  watch.reset({.units = 100, .endless = true});
  const MeasuredPart part = open_run(watch, 10.5, 1000);
  EXPECT_EQ(watch.state(), RunWatch::State::complete);
  EXPECT_EQ(part.until, 99);
}

TEST(Measurement, ALongerRunIsThatLengthFromTheStart) {
  RunWatch once, grown;
  once.reset({.units = 4000, .endless = true});
  const MeasuredPart expected = open_run(once, 10.5, 10'000);
  grown.reset({.units = 1000, .lengths = 3, .endless = true});
  int finished = 0;
  int lengthened = 0;
  for (int i = 0; i < 10'000; ++i) {
    for (; finished + 10.5 <= i; ++finished) grown.finished(finished, finished + 10.5, true);
    if (grown.state() == RunWatch::State::complete) {
      if (!grown.can_lengthen()) break;
      grown.lengthen();
      ++lengthened;
    }
    grown.arrived(i, true);
  }
  EXPECT_EQ(lengthened, 2);
  const MeasuredPart part = grown.part(0);
  EXPECT_EQ(part.from, expected.from);
  EXPECT_EQ(part.until, expected.until);
  const auto a = once.snapshots(expected), b = grown.snapshots(part);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].time, b[i].time);
    EXPECT_EQ(a[i].finished, b[i].finished);
  }
}

TEST(Measurement, RequestsThatNeverFinishOverrunTheirLength) {
  RunWatch watch;
  watch.reset({.units = 10, .lengths = 2, .endless = true});
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(watch.state(), RunWatch::State::running) << i;
    watch.arrived(i, true);
  }
  EXPECT_EQ(watch.state(), RunWatch::State::overrun);
  watch.lengthen();
  EXPECT_EQ(watch.state(), RunWatch::State::running);
}

TEST(Measurement, AClosedLoopIsMeasuredInWholeRounds) {
  // Eight clients whose answers come together, every ten seconds.
  RunWatch watch;
  watch.reset({.kind = RunKind::closed, .round = 8, .units = 80});
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 8; ++i) watch.arrived(10.0 * round, true);
    for (int i = 0; i < 8; ++i) watch.finished(10.0 * round, 10.0 * (round + 1), true);
  }
  const MeasuredPart part = watch.part(100);
  EXPECT_TRUE(part.settled);
  EXPECT_EQ(part.from, 20);   // two rounds
  EXPECT_EQ(part.until, 90);  // before clients begin to leave
  EXPECT_FALSE(part.holds_answer(20));
  EXPECT_TRUE(part.holds_answer(90));
  EXPECT_TRUE(part.holds_arrival(20));
  EXPECT_FALSE(part.holds_arrival(90));
}

TEST(Measurement, WhoStaysLongerThanALengthHoldsUpThatLengthAlone) {
  // Two clients; one waits for its first answer while the other has 45: lengths of 10, 20 and 40 have ended by then.
  RunWatch watch;
  watch.reset({.kind = RunKind::closed, .round = 2, .units = 10, .lengths = 3, .endless = true});
  watch.arrived(0, true);
  for (int i = 0; i < 45; ++i) {
    watch.arrived(i, true);
    watch.finished(i, i + 1, true);
    EXPECT_EQ(watch.state(), RunWatch::State::running) << i;
  }
  watch.arrived(45, true);  // after all three
  watch.finished(0, 45.5, true);
  EXPECT_EQ(watch.state(), RunWatch::State::complete);
  for (int length = 1; length < 3; ++length) {
    watch.lengthen();
    EXPECT_EQ(watch.state(), RunWatch::State::complete) << length;
  }
}

TEST(Measurement, SessionsCountAsOne) {
  // Sessions of two requests, a second apart, each over at once: twenty sessions.
  RunWatch watch;
  watch.reset({.units = 20, .unit_size = 2});
  for (int i = 0; i < 20; ++i) {
    watch.arrived(i, true);
    watch.finished(i, i + 0.1, false);
    watch.arrived(i + 0.2, false);
    watch.finished(i + 0.2, i + 0.3, true);
  }
  const MeasuredPart part = watch.part(20);
  EXPECT_EQ(part.from, 0.3);  // one session of twenty is done, nobody is inside
  EXPECT_EQ(part.until, 19);  // the last session begins
}

TEST(Measurement, LengthsFollowTheLoad) {
  Load load;
  const LoadLevel level{.rate = 1, .clients = 64};
  RunPlan plan = run_plan(load, level, nullptr);
  EXPECT_TRUE(plan.endless);
  EXPECT_EQ(plan.units, 1000);
  EXPECT_EQ(plan.units << (plan.lengths - 1), 64'000);
  load.turns = 8;
  EXPECT_EQ(run_plan(load, level, nullptr).units, 125);
  load.turns = 1;
  load.requests = 300;
  plan = run_plan(load, level, nullptr);
  EXPECT_FALSE(plan.endless);
  EXPECT_EQ(plan.units, 300);
  EXPECT_EQ(plan.lengths, 1);
  load.requests = 0;
  load.arrivals = ArrivalKind::curve;
  plan = run_plan(load, level, nullptr);
  EXPECT_EQ(plan.kind, RunKind::whole);
  EXPECT_FALSE(plan.endless);
  // A closed loop has four rounds at least.
  load.arrivals = ArrivalKind::closed;
  EXPECT_EQ(run_plan(load, level, nullptr).units, 1000);
  EXPECT_EQ(run_plan(load, {.clients = 512}, nullptr).units, 4000);
  plan = run_plan(load, {.clients = 50'000}, nullptr);
  EXPECT_EQ(plan.units, 200'000);
  EXPECT_EQ(plan.lengths, 1);
}

// A curve that ends is a load from its start to its end, whenever requests come.
TEST(Measurement, OfACurveThatEndsIsAllOfTheCurve) {
  for (const double end : {105.0, 1000.0}) {
    RunWatch watch;
    watch.reset({.kind = RunKind::whole, .curve_end = end, .units = 100});
    watch.arrived(3, true);
    watch.finished(3, 109, true);
    const MeasuredPart part = watch.part(109);
    EXPECT_EQ(part.from, 0);
    EXPECT_EQ(part.until, std::max(109.0, end));
  }
}

}  // namespace
}  // namespace engine

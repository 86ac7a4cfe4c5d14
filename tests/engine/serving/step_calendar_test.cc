#include "engine/serving/step_calendar.h"

#include <gtest/gtest.h>

namespace engine {
namespace {

TEST(StepCalendar, TheSoonestComesFirstAndThenWhoEnteredFirst) {
  StepCalendar calendar;
  calendar.reset();
  EXPECT_EQ(calendar.next(0), StepCalendar::kNever);
  calendar.insert(4, 70, 0);
  calendar.insert(2, 9, 0);
  calendar.insert(7, 9, 0);
  EXPECT_EQ(calendar.next(0), 9);
  EXPECT_EQ(calendar.first_at(9), 2);
  calendar.remove(2, 9);
  EXPECT_EQ(calendar.first_at(9), 7);
  calendar.remove(7, 9);
  EXPECT_EQ(calendar.first_at(9), -1);
  EXPECT_EQ(calendar.next(9), 70);
}

TEST(StepCalendar, StepsFarAheadAndFarOnAreKept) {
  StepCalendar calendar;
  calendar.reset();
  const std::int64_t now = 1'000'000'007;
  calendar.insert(0, now + 1000, now);
  calendar.insert(1, now + 5000, now);  // further than the first table reaches
  calendar.insert(2, now, now);
  EXPECT_EQ(calendar.next(now), now);
  calendar.remove(2, now);
  EXPECT_EQ(calendar.next(now), now + 1000);
  calendar.remove(0, now + 1000);
  EXPECT_EQ(calendar.next(now + 1000), now + 5000);
  EXPECT_EQ(calendar.first_at(now + 5000), 1);
}

}  // namespace
}  // namespace engine

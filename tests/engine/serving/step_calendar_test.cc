#include "engine/serving/sequences/step_calendar.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace engine {
namespace {

TEST(StepCalendar, TheSoonestComesFirstAndThenWhoEnteredFirst) {
  StepCalendar calendar;
  calendar.reset();
  EXPECT_EQ(calendar.next(), StepCalendar::kNever);
  calendar.insert(4, 70);
  calendar.insert(2, 9);
  calendar.insert(7, 9);
  EXPECT_EQ(calendar.next(), 9);
  EXPECT_EQ(calendar.first_by(8), -1);
  EXPECT_EQ(calendar.first_by(9), 2);
  calendar.remove(2, 9);
  EXPECT_EQ(calendar.first_by(9), 7);
  calendar.remove(7, 9);
  EXPECT_EQ(calendar.first_by(9), -1);
  EXPECT_EQ(calendar.next(), 70);
}

TEST(StepCalendar, RefusesWhatItHasNoRoomFor) {
  StepCalendar calendar;
  EXPECT_THROW(calendar.insert(1 << 24, 5), std::length_error);
  EXPECT_THROW(calendar.insert(3, std::int64_t{1} << 40), std::length_error);
}

TEST(StepCalendar, WhoLeavesBeforeTheirStepLeavesTheOthersInOrder) {
  StepCalendar calendar;
  calendar.reset();
  const std::int64_t far = 100'000'000'007;
  for (const std::int32_t slot : {0, 1, 2, 3}) calendar.insert(slot, far);
  calendar.insert(4, 5);
  calendar.remove(2, far);
  calendar.insert(2, far);
  for (const std::int32_t slot : {4, 0, 1, 3, 2}) {
    EXPECT_EQ(calendar.first_by(far), slot);
    calendar.remove(slot, slot == 4 ? 5 : far);
  }
  EXPECT_EQ(calendar.next(), StepCalendar::kNever);
}

}  // namespace
}  // namespace engine

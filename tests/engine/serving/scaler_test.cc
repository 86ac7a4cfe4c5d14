// How many replicas are on: by hand.
#include "engine/serving/fleet/scaler.h"

#include <gtest/gtest.h>

#include <limits>

namespace engine {
namespace {

ScalingSettings settings(ScalingPolicy policy) {
  return {.policy = policy,
          .min_replicas = 1,
          .target = 10,
          .interval = Seconds{10},
          .cold_start = Seconds{15},
          .cooldown = Seconds{30},
          .schedule = "0:2, 60:4, 100:1"};
}

// Acts until `time` with so many requests inside.
void run(Scaler& scaler, double time, double inside) {
  while (scaler.next() <= time) scaler.act(inside);
}

TEST(Scaler, AReplicaIsPaidForAtOnceAndOpensWhenItIsWarm) {
  Scaler scaler;
  scaler.reset(settings(ScalingPolicy::reactive), 8, 1);
  EXPECT_EQ(scaler.open(), 1u);
  run(scaler, 10, 35);  // four are wanted
  EXPECT_EQ(scaler.open(), 1u);
  EXPECT_EQ(scaler.starts(), 3);
  run(scaler, 24, 35);
  EXPECT_EQ(scaler.open(), 1u);
  run(scaler, 25, 35);
  EXPECT_EQ(scaler.open(), 4u);
  EXPECT_DOUBLE_EQ(scaler.on_seconds(30), 30 + 3 * 20);
}

TEST(Scaler, IsGivenUpOnlyWhenFewerWereEnoughForTheCooldown) {
  Scaler scaler;
  scaler.reset(settings(ScalingPolicy::reactive), 8, 1);
  run(scaler, 30, 35);
  run(scaler, 60, 5);  // the last wish for four was at 30
  EXPECT_EQ(scaler.open(), 4u);
  run(scaler, 70, 5);
  EXPECT_EQ(scaler.open(), 1u);
  // Given up, but on until it is empty; wanted again, it needs no warming.
  EXPECT_TRUE(scaler.unwanted(2));
  EXPECT_FALSE(scaler.unwanted(0));
  EXPECT_FALSE(scaler.unwanted(5));
  scaler.switch_off(3, 72);
  EXPECT_FALSE(scaler.unwanted(3));
  const double starts = scaler.starts();
  run(scaler, 80, 25);
  EXPECT_EQ(scaler.open(), 3u);
  EXPECT_EQ(scaler.starts(), starts);
  EXPECT_DOUBLE_EQ(scaler.on_seconds(80), 80 + 2 * 70 + 62);
}

TEST(Scaler, FollowsATimetable) {
  Scaler scaler;
  scaler.reset(settings(ScalingPolicy::scheduled), 8, 1);
  EXPECT_EQ(scaler.open(), 2u);
  run(scaler, 59, 1000);
  EXPECT_EQ(scaler.open(), 2u);
  run(scaler, 75, 0);
  EXPECT_EQ(scaler.open(), 4u);
  run(scaler, 100, 1000);
  EXPECT_EQ(scaler.open(), 1u);
}

// Numbers count from their own second on, however seldom somebody would look at a load.
TEST(Scaler, LooksAtATimetableWhenItChanges) {
  ScalingSettings scaling = settings(ScalingPolicy::scheduled);
  scaling.schedule = "0:3, 31:1, 44:3";
  scaling.cold_start = Seconds{5};
  for (const double interval : {0.1, 15.0, 1e6}) {
    scaling.interval = Seconds{interval};
    Scaler scaler;
    scaler.reset(scaling, 3, 1);
    run(scaler, 30.9, 0);
    EXPECT_EQ(scaler.open(), 3u);
    run(scaler, 31, 0);
    EXPECT_EQ(scaler.open(), 1u);
    for (const std::size_t replica : {1, 2}) scaler.switch_off(replica, 31);
    run(scaler, 48.9, 0);
    EXPECT_EQ(scaler.open(), 1u);
    EXPECT_EQ(scaler.starts(), 2);
    run(scaler, 49, 0);
    EXPECT_EQ(scaler.open(), 3u);
    EXPECT_DOUBLE_EQ(scaler.on_seconds(60), 60 + 2 * 31 + 2 * 16);
    EXPECT_EQ(scaler.next(), std::numeric_limits<double>::infinity());
  }
}

// A load that grows is met earlier by who looks ahead.
TEST(Scaler, PredictsWhatGrowsEvenly) {
  Scaler reactive, predictive;
  reactive.reset(settings(ScalingPolicy::reactive), 100, 1);
  predictive.reset(settings(ScalingPolicy::predictive), 100, 1);
  for (double time = 10; time <= 300; time += 10) {
    run(reactive, time, 2 * time);
    run(predictive, time, 2 * time);
  }
  // 600 inside need 60; within the next 25 s they will be 650.
  EXPECT_LT(reactive.open(), 60u);
  EXPECT_GE(predictive.open(), 60u);
  EXPECT_LE(predictive.open(), 70u);
}

TEST(Scaler, UnitsComeAndGoTogether) {
  Scaler scaler;
  scaler.reset(settings(ScalingPolicy::reactive), 4, 2);
  EXPECT_EQ(scaler.open(), 2u);
  run(scaler, 40, 50);
  EXPECT_EQ(scaler.open(), 6u);
  EXPECT_DOUBLE_EQ(scaler.on_seconds(40), 2 * 40 + 4 * 30);
}

// Nobody came for the cooldown: all go. Whoever comes next starts one at once, not at the next look.
TEST(Scaler, FallsToNothingAndIsWoken) {
  for (const ScalingPolicy policy : {ScalingPolicy::reactive, ScalingPolicy::predictive}) {
    ScalingSettings to_zero = settings(policy);
    to_zero.min_replicas = 0;
    Scaler scaler;
    scaler.reset(to_zero, 8, 1);
    EXPECT_EQ(scaler.open(), 0u);
    EXPECT_DOUBLE_EQ(scaler.on_seconds(3), 0);
    EXPECT_TRUE(scaler.wake(3));
    EXPECT_FALSE(scaler.wake(4));  // one is on its way
    EXPECT_EQ(scaler.open(), 0u);
    run(scaler, 10, 1);
    run(scaler, 18, 1);
    EXPECT_EQ(scaler.open(), 1u);
    run(scaler, 60, 1);
    scaler.act(0, true);  // somebody has come and gone before the look at 70
    run(scaler, 100, 0);
    EXPECT_EQ(scaler.open(), 1u);
    run(scaler, 110, 0);
    EXPECT_EQ(scaler.open(), 0u);
    scaler.switch_off(0, 110);
    // Nobody is started by what remains of a smoothed level.
    run(scaler, 10'000, 0);
    EXPECT_EQ(scaler.starts(), 1);
    EXPECT_DOUBLE_EQ(scaler.on_seconds(10'000), 110 - 3);
  }
}

TEST(Scaler, ATimetableWakesNobody) {
  ScalingSettings nights = settings(ScalingPolicy::scheduled);
  nights.schedule = "0:1, 40:0, 80:2";
  Scaler scaler;
  scaler.reset(nights, 2, 1);
  run(scaler, 40, 5);
  EXPECT_EQ(scaler.open(), 0u);
  EXPECT_FALSE(scaler.wake(45));
  run(scaler, 100, 5);
  EXPECT_EQ(scaler.open(), 2u);
}

TEST(Scaler, SaysWhatItCannotFollow) {
  ScalingSettings scaling = settings(ScalingPolicy::scheduled);
  EXPECT_FALSE(scaling_problem(scaling, 4));
  EXPECT_TRUE(scaling_problem(scaling, 3));
  for (const char* schedule :
       {"", "5:1", "0:1, 0:2", "0:1.5", "0:0", "0:1, 9:0", "0:-1", "0:two", "0:1, 10"}) {
    scaling.schedule = schedule;
    EXPECT_TRUE(scaling_problem(scaling, 8)) << schedule;
  }
  scaling.policy = ScalingPolicy::reactive;
  EXPECT_FALSE(scaling_problem(scaling, 8));
  scaling.min_replicas = 9;
  EXPECT_TRUE(scaling_problem(scaling, 8));
}

}  // namespace
}  // namespace engine

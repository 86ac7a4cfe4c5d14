#include "engine/serving/fleet/event_queue.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/linear_scan.h"
#include "tests/support/random_load.h"

namespace engine {
namespace {

// Replicas that step together have their events at the first of them, in the order of all replicas: a few groups, and many.
TEST(EventQueue, OfAGroupTheFirstReplicaHasTheTurn) {
  constexpr std::size_t replicas = 64;
  for (const std::size_t members : {1, 4, 16, 32}) {
    EventQueue queue;
    queue.reset(replicas, members);
    std::vector<toys::ReplicaEvent> events(replicas / members);
    toys::Dice dice(members);
    for (int change = 0; change < 3000; ++change) {
      const auto group = std::size_t(dice.whole(0, std::int64_t(events.size()) - 1));
      events[group] = {.time = dice.chance(0.1) ? kNever : 1e-6 * double(dice.whole(1, 20)),
                       .work_ends = dice.chance(0.7)};
      queue.set(group * members, events[group].time, events[group].work_ends);
      const std::size_t next = toys::next_by_scan(events);
      const EventQueue::Turn turn = queue.next();
      const double others = toys::earliest_but_by_scan(events, next);
      ASSERT_EQ(turn.time, events[next].time);
      ASSERT_EQ(turn.others, others);
      if (turn.time == kNever) continue;
      ASSERT_EQ(turn.replica, next * members);
      if (others < kNever) {
        const std::size_t after = queue.after(turn);
        ASSERT_EQ(after % members, 0u);
        ASSERT_NE(after, turn.replica);
        ASSERT_EQ(queue.time_of(after), others);
      }
    }
  }
}

}  // namespace
}  // namespace engine

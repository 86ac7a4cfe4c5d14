// The event queue and the routers' index against a linear scan over all replicas: whatever the load,
// the policy and the router, the same replica has its turn and the same replica is the lightest, at
// every event of a run.
#include <gtest/gtest.h>

#include <limits>

#include "engine/serving/serving_sim.h"
#include "tests/support/linear_scan.h"
#include "tests/support/serving_laboratory.h"

namespace engine {
namespace {

// What a run looks like to somebody who scans.
struct Scanner {
  RouterName router;
  std::vector<toys::ReplicaEvent> events;
  std::vector<std::int64_t> weights;
  int looked = 0;
  int together = 0;  // moments that several replicas share

  void look(const ServingSim& sim) {
    const std::vector<Replica>& replicas = sim.replicas();
    const ReplicaWeight weight = router_of(router).weight;
    events.clear();
    weights.clear();
    for (const Replica& replica : replicas) {
      events.push_back({replica.next_event(), replica.working()});
      weights.push_back(weight == ReplicaWeight::tokens ? replica.outstanding_tokens()
                                                        : replica.outstanding());
    }
    const std::size_t next = toys::next_by_scan(events);
    const double others = toys::earliest_but_by_scan(events, next);
    ++looked;
    if (events[next].time < kNever) {
      ASSERT_EQ(sim.events().next().replica, next);
      together += others <= events[next].time + kSameMoment;
    }
    ASSERT_EQ(sim.events().time_of(next), events[next].time);
    ASSERT_EQ(sim.events().next().time, events[next].time);
    ASSERT_EQ(sim.events().next().others, others);
    if (weight == ReplicaWeight::none) return;
    ASSERT_EQ(sim.weights().first(), toys::first_least_by_scan(weights));
  }
};

TEST(ServingLaws, EveryTurnIsThatOfALinearScan) {
  int looked = 0, together = 0;
  std::array<int, kRouters.size()> seen{};
  for (std::uint64_t number = 0; number < 150; ++number) {
    toys::RandomCase made = toys::random_case(number);
    toys::Dice dice(1'000'000 + number);
    Scenario& scenario = made.scenario;
    scenario.serving.replicas = dice.whole(1, 64);
    scenario.serving.router = dice.one_of<RouterName>();
    scenario.load.requests = dice.whole(5, 300);
    // Bursts that leave replicas in step with one another, and loads spread over time.
    if (dice.chance(0.3)) scenario.load.lengths.distribution = LengthKind::fixed;
    scenario.load.rate = RequestsPerSecond{dice.chance(0.3) ? 1e6 : dice.between(50, 5000)};
    Scanner scanner{scenario.serving.router, {}, {}};
    const std::function<void(const ServingSim&)> look = [&](const ServingSim& sim) {
      scanner.look(sim);
    };
    toys::Laboratory laboratory(std::move(made));
    laboratory.before_event = &look;
    laboratory.run();
    ASSERT_FALSE(HasFailure()) << "case " << number;
    looked += scanner.looked;
    together += scanner.together;
    ++seen[std::size_t(scanner.router)];
  }
  for (const int count : seen) EXPECT_GT(count, 5);
  EXPECT_GT(looked, 10'000);
  EXPECT_GT(together, 1'000);
}

// A replica goes on without a look elsewhere as long as nothing can happen there. Somebody who looks at every event sees the
// same run.
TEST(ServingLaws, TurnsInARowAreThoseOfTheQueue) {
  const std::function<void(const ServingSim&)> look = [](const ServingSim&) {};
  int pipelines = 0;
  for (std::uint64_t number = 0; number < 300; ++number) {
    toys::RandomCase made = toys::random_case(number);
    // Several answers to a prompt begin and end one by one, of which nobody is told but of the last.
    if (number % 3 == 0) {
      made.scenario.load.samples = 1 + std::int64_t(number % 4);
      made.scenario.load.turns = made.scenario.load.branches = 1;
      made.scenario.serving.prefix_caching = true;
    }
    toys::Laboratory alone(made), watched(std::move(made));
    watched.before_event = &look;
    const ServingStats::Summary one = alone.run(), other = watched.run();
    ASSERT_EQ(alone.sim.makespan(), watched.sim.makespan()) << number;
    ASSERT_EQ(one.steps, other.steps) << number;
    ASSERT_EQ(one.busy, other.busy) << number;
    ASSERT_EQ(one.kv_token_seconds, other.kv_token_seconds) << number;
    ASSERT_EQ(one.kv_peak, other.kv_peak) << number;
    ASSERT_EQ(alone.sim.idle_seconds(), watched.sim.idle_seconds()) << number;
    ASSERT_EQ(alone.sim.table().seconds(), watched.sim.table().seconds()) << number;
    ASSERT_EQ(alone.sim.stats().gap_count(), watched.sim.stats().gap_count()) << number;
    if (alone.sim.stats().gap_count() > 0) {
      ASSERT_EQ(alone.sim.stats().gap_mean(), watched.sim.stats().gap_mean()) << number;
    }
    ASSERT_EQ(one.in_system_seconds, other.in_system_seconds) << number;
    ASSERT_EQ(alone.rows.size(), watched.rows.size()) << number;
    for (std::size_t i = 0; i < alone.rows.size(); ++i) {
      ASSERT_EQ(alone.rows[i].number, watched.rows[i].number) << number;
      if (alone.rows[i].end != RequestEnd::finished) continue;
      ASSERT_EQ(alone.rows[i].finish.value, watched.rows[i].finish.value) << number;
    }
    pipelines += alone.made.scenario.parallel.pp > 1;
  }
  EXPECT_GT(pipelines, 10);
}

TEST(ServingLaws, TheIndexOfTheLeastIsThatOfALinearScan) {
  toys::Dice dice(3);
  for (std::int64_t count = 1; count <= 5000; count += count < 70 ? 1 : 997) {
    LeastOf<std::int64_t> index;
    index.reset(std::size_t(count), 0, std::numeric_limits<std::int64_t>::max());
    std::vector<std::int64_t> values(std::size_t(count), 0);
    for (int i = 0; i < 200; ++i) {
      const std::size_t place = std::size_t(dice.whole(0, count - 1));
      values[place] = dice.whole(0, 9);
      index.set(place, values[place]);
      const std::size_t first = toys::first_least_by_scan(values);
      ASSERT_EQ(index.least(), values[first]);
      ASSERT_EQ(index.first_at_most(index.least()), first);
      ASSERT_EQ(index.first(), first);
      std::vector<std::int64_t> others = values;
      others[place] = std::numeric_limits<std::int64_t>::max();
      const LeastOf<std::int64_t>::Others beside = index.others(place);
      ASSERT_EQ(beside.least, others[toys::first_least_by_scan(others)]);
      if (count > 1) {
        ASSERT_NE(index.one_of(beside, place), place);
        ASSERT_EQ(index.at(index.one_of(beside, place)), beside.least);
      }
    }
  }
}

}  // namespace
}  // namespace engine

// The event queue and the routers' index against a linear scan over all replicas: whatever the load,
// the policy and the router, the same replica has its turn and the same replica is the lightest, at
// every event of a run.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>

#include "engine/serving/serving_sim.h"
#include "tests/support/linear_scan.h"
#include "tests/support/serving_laboratory.h"
#include "tests/support/serving_mechanisms.h"

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

// To the last digit.
void expect_same_run(const toys::Laboratory& alone, const ServingStats::Summary& one,
                     const toys::Laboratory& watched, const ServingStats::Summary& other,
                     const std::string& which) {
  ASSERT_EQ(alone.sim.makespan(), watched.sim.makespan()) << which;
  ASSERT_EQ(one.steps, other.steps) << which;
  ASSERT_EQ(one.busy, other.busy) << which;
  ASSERT_EQ(one.kv_token_seconds, other.kv_token_seconds) << which;
  ASSERT_EQ(one.kv_peak, other.kv_peak) << which;
  ASSERT_EQ(one.tier_tokens, other.tier_tokens) << which;
  ASSERT_EQ(alone.sim.idle_seconds(), watched.sim.idle_seconds()) << which;
  ASSERT_EQ(alone.sim.stats().gap_count(), watched.sim.stats().gap_count()) << which;
  if (alone.sim.stats().gap_count() > 0) {
    ASSERT_EQ(alone.sim.stats().gap_mean(), watched.sim.stats().gap_mean()) << which;
  }
  ASSERT_EQ(one.in_system_seconds, other.in_system_seconds) << which;
  ASSERT_EQ(alone.rows.size(), watched.rows.size()) << which;
  for (std::size_t i = 0; i < alone.rows.size(); ++i) {
    ASSERT_EQ(alone.rows[i].number, watched.rows[i].number) << which;
    if (alone.rows[i].end != RequestEnd::finished) continue;
    ASSERT_EQ(alone.rows[i].finish.value, watched.rows[i].finish.value) << which;
  }
}

const std::function<void(const ServingSim&)> kLook = [](const ServingSim&) {};

// A replica goes on without a look elsewhere as long as nothing can happen there. Somebody who looks at every event sees the
// same run.
TEST(ServingLaws, TurnsInARowAreThoseOfTheQueue) {
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
    watched.before_event = &kLook;
    const ServingStats::Summary one = alone.run(), other = watched.run();
    expect_same_run(alone, one, watched, other, std::to_string(number));
    ASSERT_FALSE(HasFailure());
    ASSERT_EQ(alone.sim.table().seconds(), watched.sim.table().seconds()) << number;
    pipelines += alone.made.scenario.parallel.pp > 1;
  }
  EXPECT_GT(pipelines, 10);
}

// The same whatever else is switched on, for clients that ask again at once and for those that think first: a replica that has told one
// of an answer plans on before anybody else looks, unless a request comes at that moment.
TEST(ServingLaws, TurnsInARowGoWithEveryMechanism) {
  std::uint64_t number = 0;
  double told = 0, loaded = 0;
  const toys::Mechanism& tiers =
      *std::ranges::find(toys::mechanisms(), "tiers", &toys::Mechanism::name);
  for (const toys::Mechanism& mechanism : toys::mechanisms()) {
    for (int n = 0; n < 24; ++n, ++number) {
      toys::Switched on{&mechanism};
      if (n % 2 > 0 && &mechanism != &tiers && toys::together(mechanism, tiers))
        on.push_back(&tiers);
      toys::Fleet alone(number), watched(number);
      for (toys::Fleet* fleet : {&alone, &watched}) {
        Load& load = fleet->lab.made.scenario.load;
        if (n % 3 > 0 && load.arrivals != ArrivalKind::trace) load.turns = 3;
        if (n % 3 > 1) load.think_time = Seconds{0.01};
        fleet->main().router = router_named("least_outstanding");
        toys::switch_on(*fleet, on);
      }
      watched.lab.before_event = &kLook;
      const ServingStats::Summary one = alone.run(false), other = watched.run(false);
      expect_same_run(alone.lab, one, watched.lab, other,
                      std::to_string(number) + " " + std::string(mechanism.name));
      ASSERT_FALSE(HasFailure());
      if (alone.lab.made.scenario.load.turns > 1) told += one.finished;
      loaded += one.loads;
    }
  }
  EXPECT_GT(told, 1000);
  EXPECT_GT(loaded, 100);
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
      const auto from = std::size_t(dice.whole(0, count - 1));
      const auto next =
          std::find(values.begin() + std::ptrdiff_t(from), values.end(), values[first]);
      ASSERT_EQ(index.next_at_most(from, index.least()),
                next == values.end() ? first : std::size_t(next - values.begin()));
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

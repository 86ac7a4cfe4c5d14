// Every two mechanisms of a fleet together, on random loads: nothing is lost, requests inside are as many as arrive in the
// time they stay, and the closed form equals stepping.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/serving_laboratory.h"

namespace engine {
namespace {

// A random case of one pool, or of two, with nothing switched on.
struct Fleet {
  toys::Laboratory lab;
  toys::Dice dice;
  ServingSettings readers;
  bool two_pools = false, tiers = false;
  Journey journey;
  Pace pace;
  TierSetups below{};

  explicit Fleet(std::uint64_t number) : lab(toys::random_case(number)), dice(88'000'000 + number) {
    ServingSettings& serving = lab.made.scenario.serving;
    serving.prefix_caching = false;
    serving.replicas = dice.whole(1, 3);
    serving.ordering = Ordering::fcfs;
    if (serving.policy == policy_named("static")) serving.policy = policy_named("sarathi");
    lab.made.scenario.load.priorities = 1;
  }
  ServingSettings& main() { return lab.made.scenario.serving; }

  ServingStats::Summary run(bool stepping) {
    main().stepping = stepping;
    readers = main();
    PoolSetup writing = lab.pool();
    writing.pace = pace;
    writing.tiers = below;
    std::vector<PoolSetup> pools{writing};
    if (two_pools) {
      pools.push_back({.settings = readers,
                       .context = lab.context,
                       .kv_blocks = readers.kv_blocks,
                       .replicas = readers.replicas,
                       .tiers = below,
                       .longest = lab.made.scenario.model.max_context,
                       .role = DeploymentRole::prefill});
    }
    return lab.run(pools, journey);
  }
};

struct Mechanism {
  std::string_view name;
  void (*switch_on)(Fleet& fleet);
};

constexpr std::array kMechanisms{
    Mechanism{"prefill pool",
              [](Fleet& fleet) {
                fleet.two_pools = true;
                fleet.journey.stages = {Stage{.pool = 1, .reads = true, .writes = false},
                                        Stage{.pool = 0, .reads = false, .writes = true}};
                fleet.journey.stages[1].carry = {
                    .sent_per_token = fleet.dice.between(0, 1e-3),
                    .received_per_token = fleet.dice.between(0, 1e-3),
                    .fabric_per_token = fleet.dice.chance(0.5) ? 1e-3 : 0,
                    .latency = fleet.dice.between(0, 1e-3),
                    .last_share = fleet.dice.chance(0.5) ? 1 : 0.2,
                    .tells_first_token = fleet.dice.chance(0.5)};
              }},
    Mechanism{"speculation",
              [](Fleet& fleet) {
                constexpr Pace paces[] = {{12, 5, 4}, {2, 1, 2}, {7, 3, 3}, {3, 2, 2}};
                fleet.pace = paces[fleet.dice.whole(0, 3)];
              }},
    Mechanism{"prefix caching", [](Fleet& fleet) { fleet.main().prefix_caching = true; }},
    Mechanism{"tiers",
              [](Fleet& fleet) {
                fleet.main().prefix_caching = true;
                fleet.main().tiers.write = fleet.dice.one_of<TierWrite>();
                // In the order in which they are asked: peers, host, disk, the shared store.
                fleet.below = {TierSetup{fleet.dice.whole(-20, 20), 5e-7, 1e-6},
                               {fleet.dice.whole(0, 60), 1e-6, 1e-5},
                               {fleet.dice.whole(1, 200), 2e-6, 1e-4},
                               {fleet.dice.whole(-200, 200), 1e-6, 2e-4}};
              }},
    Mechanism{"scaling",
              [](Fleet& fleet) {
                fleet.main().replicas = fleet.dice.whole(2, 4);
                fleet.main().scaling = {.policy = ScalingPolicy::reactive,
                                        .target = fleet.dice.between(1, 6),
                                        .interval = Seconds{fleet.dice.between(0.1, 0.4)},
                                        .cold_start = Seconds{fleet.dice.between(0, 0.4)},
                                        .cooldown = Seconds{fleet.dice.between(0, 0.5)}};
              }},
    Mechanism{"failures",
              [](Fleet& fleet) {
                fleet.main().failures = {
                    .mean_time_to_failure = Seconds{fleet.dice.between(0.3, 2)},
                    .mean_time_to_repair = Seconds{fleet.dice.between(0, 0.3)},
                    .attempts = 1000,  // nobody is given up
                    .answers = fleet.dice.one_of<AfterFailure>()};
              }},
    Mechanism{"priorities",
              [](Fleet& fleet) {
                fleet.main().ordering = Ordering::priority;
                fleet.main().preemption = Preemption::priority;
                fleet.lab.made.scenario.load.classes = {.high = {.share = 0.3},
                                                        .low = {.share = 0.4}};
              }},
    Mechanism{"shedding", [](Fleet& fleet) { fleet.main().admission.max_queue = 3; }},
};

void expect_conservation(Fleet& fleet, const ServingStats::Summary& summary,
                         const std::string& which) {
  EXPECT_EQ(
      summary.tokens_in + summary.tokens_out + summary.tokens_refused + summary.tokens_given_up,
      fleet.lab.offered_tokens())
      << which;
  for (const Replica& replica : fleet.lab.sim.replicas()) {
    EXPECT_EQ(replica.outstanding(), 0) << which;
    EXPECT_EQ(replica.waiting(), 0) << which;
    EXPECT_EQ(replica.pool().free(), replica.pool().total()) << which;
  }
  // Little: requests inside, summed over time, are the times that each was inside.
  double inside = 0;
  for (const RequestRow& row : fleet.lab.rows) {
    if (row.end == RequestEnd::finished) inside += row.finish.value - row.arrival.value;
  }
  EXPECT_NEAR(summary.in_system_seconds, inside, 1e-9 * std::max(1.0, inside)) << which;
}

void expect_same(const std::vector<RequestRow>& fast, const std::vector<RequestRow>& slow,
                 const std::string& which) {
  std::map<std::int64_t, RequestRow> rows;
  for (const RequestRow& row : fast) rows[row.number] = row;
  ASSERT_EQ(fast.size(), slow.size()) << which;
  for (const RequestRow& row : slow) {
    const RequestRow& other = rows[row.number];
    EXPECT_EQ(row.end, other.end) << which;
    EXPECT_EQ(row.attempts, other.attempts) << which;
    EXPECT_EQ(row.cached_tokens, other.cached_tokens) << which;
    if (row.end != RequestEnd::finished) continue;
    EXPECT_NEAR(row.first_token.value / other.first_token.value, 1, 1e-9) << which;
    EXPECT_NEAR(row.finish.value / other.finish.value, 1, 1e-9) << which;
  }
}

TEST(ServingPairs, NothingIsLostAndTheClosedFormEqualsStepping) {
  constexpr std::uint64_t cases = 25;  // of each pair
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < kMechanisms.size(); ++i) {
    for (std::size_t j = i; j < kMechanisms.size(); ++j) {
      for (std::uint64_t n = 0; n < cases; ++n) {
        Fleet fleet(number++);
        kMechanisms[i].switch_on(fleet);
        if (j != i) kMechanisms[j].switch_on(fleet);
        const std::string which = std::string(kMechanisms[i].name) + " and " +
                                  std::string(kMechanisms[j].name) + ", case " +
                                  std::to_string(number - 1);
        expect_conservation(fleet, fleet.run(false), which);
        const std::vector<RequestRow> rows = fleet.lab.rows;
        fleet.run(true);
        expect_same(rows, fleet.lab.rows, which);
        ASSERT_FALSE(HasFailure());
      }
    }
  }
}

}  // namespace
}  // namespace engine

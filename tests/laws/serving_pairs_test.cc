// Every two mechanisms of a fleet together, on random loads: nothing is lost, requests inside are as many as arrive in the
// time they stay, and the closed form equals stepping.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/speculation/acceptance.h"
#include "tests/support/serving_laboratory.h"

namespace engine {
namespace {

// A random case of one pool, or of two, with nothing switched on.
struct Fleet {
  toys::Laboratory lab;
  toys::Dice dice;
  ServingSettings readers;
  bool two_pools = false;
  Journey journey;
  Pace pace;
  TierSetups below{};
  SequencePaces own_paces;
  std::vector<DraftLength> lengths;
  LateReading late_reading = {.least = 1e-4, .per_token = 1e-6, .prompt = 50, .output = 50};
  Turns turns;
  AdapterCache::Setup adapters{.slots = 0};
  ClockChoice clock;
  std::int64_t state = 0;  // blocks of a state of scans

  explicit Fleet(std::uint64_t number) : lab(toys::random_case(number)), dice(88'000'000 + number) {
    ServingSettings& serving = lab.made.scenario.serving;
    serving.prefix_caching = false;
    serving.replicas = dice.whole(1, 3);
    serving.ordering = Ordering::fcfs;
    if (serving.policy == policy_named("static")) serving.policy = policy_named("sarathi");
    lab.made.scenario.load.priorities = 1;
  }
  ServingSettings& main() { return lab.made.scenario.serving; }
  std::int64_t state_tokens() { return state * main().block_size; }
  // Everybody has room for a state besides.
  Pace beside_state(Pace one) {
    if (state > 0) one.room = one.ahead() + state_tokens();
    return one;
  }

  ServingStats::Summary run(bool stepping) {
    main().stepping = stepping;
    readers = main();
    PoolSetup writing = lab.pool();
    writing.pace = beside_state(pace);
    writing.state = state_tokens();
    writing.tiers = below;
    writing.turns = turns;
    writing.adapters = adapters;
    writing.clock = clock;
    if (own_paces.drawn || own_paces.by_class) writing.own_paces = &own_paces;
    std::vector<DraftLength> longer = lengths;
    for (DraftLength& length : longer) length.pace = beside_state(length.pace);
    if (!lengths.empty()) {
      writing.lengths = longer;
      writing.draft = &lengths.back().draft;
      writing.late_reading = &late_reading;
    }
    // Replicas that share experts come together.
    const std::int64_t unit = lab.shard.lockstep ? lab.shard.expert_replicas : 1;
    writing.unit = unit;
    writing.replicas *= unit;
    std::vector<PoolSetup> pools{writing};
    if (two_pools) {
      if (state > 0) journey.stages[1].carry.state = {.sent = 1e-3, .received = 5e-4};
      pools.push_back({.settings = readers,
                       .context = lab.context,
                       .kv_blocks = readers.kv_blocks,
                       .replicas = readers.replicas * unit,
                       .unit = unit,
                       .tiers = below,
                       .adapters = adapters,
                       .longest = lab.made.scenario.model.max_context,
                       .pace = beside_state({}),
                       .state = state_tokens(),
                       .role = DeploymentRole::prefill});
    }
    return lab.run(pools, journey);
  }
};

struct Mechanism {
  std::string_view name;
  void (*switch_on)(Fleet& fleet);
  // What it is refused with: see the refusals of task serve.
  std::vector<std::string_view> not_with = {};
};

void switch_on_prefill(Fleet& fleet) {
  fleet.two_pools = true;
  fleet.journey.stages = {Stage{.pool = 1, .reads = true, .writes = false},
                          Stage{.pool = 0, .reads = false, .writes = true}};
  fleet.journey.stages[1].carry = {.token = {.sent = fleet.dice.between(0, 1e-3),
                                             .received = fleet.dice.between(0, 1e-3),
                                             .fabric = fleet.dice.chance(0.5) ? 1e-3 : 0},
                                   .latency = fleet.dice.between(0, 1e-3),
                                   .last_share = fleet.dice.chance(0.5) ? 1 : 0.2,
                                   .tells_first_token = fleet.dice.chance(0.5)};
}

void switch_on_adapters(Fleet& fleet) {
  fleet.lab.made.scenario.load.adapters = 6;
  fleet.adapters = {.slots = 3, .load_seconds = 0.01, .latency = 1e-4};
}

// Up to three positions, of which sequences of each class accept their own share.
void switch_on_own_paces(Fleet& fleet) {
  fleet.pace = {.tokens = 4, .steps = 1, .queries = 4};
  const char* acceptances[] = {"0.9", "0.5 0.4", "0.1"};
  for (std::size_t i = 0; i < kRequestClasses; ++i) {
    const Acceptance accepted = *read_acceptance(acceptances[i]), chances = reached(accepted);
    SequencePaces::OfClass& of = fleet.own_paces.classes[i];
    of.chances.assign(chances.begin(), chances.end());
    for (std::int64_t depth = 0; depth <= 3; ++depth) {
      of.means.push_back(expected_pace(expected_tokens(accepted, depth), depth));
    }
  }
  fleet.lab.made.scenario.load.classes.high.share = 0.3;
  fleet.lab.made.scenario.load.classes.low.share = 0.4;
}

const std::vector<Mechanism>& mechanisms() {
  static const std::vector<Mechanism> all{
      Mechanism{"prefill pool", switch_on_prefill},
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
      Mechanism{"blocks set aside",
                [](Fleet& fleet) {
                  switch_on_prefill(fleet);
                  fleet.journey.pushes = true;
                },
                {"shedding"}},
      Mechanism{"drawn acceptance",
                [](Fleet& fleet) {
                  switch_on_own_paces(fleet);
                  fleet.own_paces.drawn = true;
                },
                {"speculation"}},
      Mechanism{"acceptance by class",
                [](Fleet& fleet) {
                  switch_on_own_paces(fleet);
                  fleet.own_paces.by_class = true;
                },
                {"speculation"}},
      Mechanism{"length by load",
                [](Fleet& fleet) {
                  const bool own = fleet.own_paces.drawn || fleet.own_paces.by_class;
                  for (std::int64_t depth = 0; depth <= 3; ++depth) {
                    DraftStep draft;
                    draft.model.emplace(fleet.lab.context);
                    draft.reads_prompts = false;
                    draft.fixed = Seconds{fleet.dice.between(0, 1e-4)};
                    if (depth > 0) draft.rounds.push_back({.queries = 1, .steps = depth});
                    const double expected = 1 + 0.8 * double(depth);
                    const Pace pace =
                        own ? Pace{depth + 1, 1, depth + 1, 3} : changing_pace(expected, depth, 3);
                    fleet.lengths.push_back(
                        {.pace = pace, .expected = expected, .draft = draft, .reads_late = true});
                  }
                  fleet.pace = fleet.lengths.back().pace;
                },
                {"speculation"}},
      Mechanism{"turns",
                [](Fleet& fleet) {
                  const double period = fleet.dice.between(0.05, 0.5);
                  fleet.turns = {.period = period,
                                 .offset = fleet.dice.between(0, 0.3),
                                 .length = period * fleet.dice.between(0.2, 0.9)};
                }},
      Mechanism{"images",
                [](Fleet& fleet) {
                  fleet.lab.encoders = {.replicas = fleet.dice.whole(1, 2),
                                        .seconds = {0.01},
                                        .sending = 1e-3,
                                        .latency = 1e-4};
                  if (fleet.dice.chance(0.5)) fleet.lab.encoders.seconds = {0.01, 0.015, 0.018};
                }},
      Mechanism{"adapters", switch_on_adapters},
      Mechanism{"adapters in two pools",
                [](Fleet& fleet) {
                  switch_on_prefill(fleet);
                  switch_on_adapters(fleet);
                }},
      Mechanism{"retention",
                [](Fleet& fleet) {
                  fleet.main().prefix_caching = true;
                  fleet.main().retention = {.policy = fleet.dice.one_of<Retention>(),
                                            .ttl = Seconds{fleet.dice.between(0.01, 1)}};
                }},
      Mechanism{
          "clock",
          [](Fleet& fleet) { fleet.clock = {.lowest = 0.5, .power_exponent = 2, .limit = 0.01}; }},
      Mechanism{"shared experts",
                [](Fleet& fleet) {
                  Scenario& scenario = fleet.lab.made.scenario;
                  const std::int64_t devices = fleet.dice.chance(0.5) ? 2 : 4;
                  scenario.model = toys::mixture();
                  scenario.parallel = {.dp = devices, .ep = devices};
                  fleet.lab.shard = shard_of(scenario.model, scenario.parallel, scenario.quant);
                  fleet.lab.shard.lockstep = true;
                  fleet.lab.shard.two_halves = fleet.dice.chance(0.3);
                },
                {"clock"}},
      Mechanism{"fair share",
                [](Fleet& fleet) {
                  fleet.main().ordering = Ordering::fair_share;
                  fleet.lab.made.scenario.load.tenants = 3;
                },
                {"priorities"}},
  };
  return all;
}

bool together(const Mechanism& one, const Mechanism& other) {
  return std::ranges::find(one.not_with, other.name) == one.not_with.end() &&
         std::ranges::find(other.not_with, one.name) == other.not_with.end();
}

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
  if (summary.failed > 0) return;  // rows do not say when a request was given up
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
    // What is closer than a nanosecond is one moment, on either side of which a step may begin.
    const auto tolerance = [](Seconds time) { return kSameMoment + 1e-9 * time.value; };
    EXPECT_NEAR(row.first_token.value, other.first_token.value, tolerance(row.first_token))
        << which;
    EXPECT_NEAR(row.finish.value, other.finish.value, tolerance(row.finish)) << which;
  }
}

void expect_both_ways_alike(std::uint64_t number, const Mechanism& one, const Mechanism& other) {
  Fleet fleet(number);
  one.switch_on(fleet);
  if (&other != &one) other.switch_on(fleet);
  const std::string which = std::string(one.name) + " and " + std::string(other.name) + ", case " +
                            std::to_string(number);
  expect_conservation(fleet, fleet.run(false), which);
  const std::vector<RequestRow> rows = fleet.lab.rows;
  fleet.run(true);
  expect_same(rows, fleet.lab.rows, which);
}

// With more cases: LLMSWEEP_CASES=200 llmsweep_tests --gtest_filter='ServingPairs.*'
std::uint64_t cases_of_each(std::uint64_t usual) {
  const char* const asked = std::getenv("LLMSWEEP_CASES");
  return asked != nullptr ? std::strtoull(asked, nullptr, 10) : usual;
}

TEST(ServingPairs, NothingIsLostAndTheClosedFormEqualsStepping) {
  const std::uint64_t cases = cases_of_each(8);
  const std::vector<Mechanism>& all = mechanisms();
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = i; j < all.size(); ++j) {
      if (!together(all[i], all[j])) continue;
      for (std::uint64_t n = 0; n < cases; ++n) {
        expect_both_ways_alike(number++, all[i], all[j]);
        ASSERT_FALSE(HasFailure());
      }
    }
  }
  EXPECT_GT(number, 1000);
}

const Mechanism& mechanism_named(std::string_view name) {
  return *std::ranges::find(mechanisms(), name, &Mechanism::name);
}

// KV that comes or goes inside a stretch finds the cache as the steps before it have left it: what those needed is gone.
TEST(ServingPairs, StepsTakeFromTheCacheBeforeWhatComesAfterThem) {
  for (const std::uint64_t number : {2526, 2527, 2528, 2529}) {
    expect_both_ways_alike(number, mechanism_named("prefix caching"),
                           mechanism_named("blocks set aside"));
  }
}

// Sequences with blocks do not wait for adapters of others that wait for blocks.
TEST(ServingPairs, AdaptersComeBeforeBlocks) {
  for (const std::uint64_t number : {6310, 6311, 6312, 6313}) {
    expect_both_ways_alike(number, mechanism_named("speculation"),
                           mechanism_named("adapters in two pools"));
  }
}

// The same of models with scans, whose sequences have states and leave some in the cache.
TEST(ServingPairs, StatesGoWithEveryMechanism) {
  const std::uint64_t cases = cases_of_each(16);
  std::uint64_t number = 500'000;
  double found = 0;
  for (const Mechanism& mechanism : mechanisms()) {
    for (std::uint64_t n = 0; n < cases; ++n) {
      Fleet fleet(number++);
      fleet.main().prefix_caching = true;
      fleet.state = fleet.dice.whole(1, 4);
      mechanism.switch_on(fleet);
      const std::string which =
          "states and " + std::string(mechanism.name) + ", case " + std::to_string(number - 1);
      expect_conservation(fleet, fleet.run(false), which);
      const std::vector<RequestRow> rows = fleet.lab.rows;
      fleet.run(true);
      expect_same(rows, fleet.lab.rows, which);
      for (const RequestRow& row : rows) found += double(row.cached_tokens);
      ASSERT_FALSE(HasFailure());
    }
  }
  EXPECT_GT(found, 10'000);
}

}  // namespace
}  // namespace engine

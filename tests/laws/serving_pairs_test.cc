// Every two mechanisms of a fleet together, on random loads: nothing is lost, requests inside are as many as arrive in the
// time they stay, and the closed form equals stepping.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/serving_mechanisms.h"

namespace engine {
namespace {

using toys::Fleet;
using toys::Mechanism;
using toys::mechanisms;

bool together(const Mechanism& one, const Mechanism& other) {
  return std::ranges::find(one.not_with, other.name) == one.not_with.end() &&
         std::ranges::find(other.not_with, one.name) == other.not_with.end();
}

void expect_conservation(Fleet& fleet, const ServingStats::Summary& summary,
                         const std::string& which) {
  const std::int64_t answers = fleet.lab.made.scenario.load.samples;
  if (answers == 1) {
    EXPECT_EQ(
        summary.tokens_in + summary.tokens_out + summary.tokens_refused + summary.tokens_given_up,
        fleet.lab.offered_tokens())
        << which;
  }
  for (const Replica& replica : fleet.lab.sim.replicas()) {
    EXPECT_EQ(replica.outstanding(), 0) << which;
    EXPECT_EQ(replica.waiting(), 0) << which;
    EXPECT_EQ(replica.pool().free(), replica.pool().total()) << which;
  }
  // Rows do not say when a request was given up, or turned away once it had waited for blocks.
  if (summary.failed > 0 || (fleet.journey.pushes && summary.shed > 0)) return;
  // Little: requests inside, summed over time, are the times that each was inside.
  double inside = 0;
  for (const RequestRow& row : fleet.lab.rows) {
    if (row.end != RequestEnd::finished) continue;
    inside += row.finish.value - row.arrival.value;
    EXPECT_GE(row.output_tokens, answers) << which;
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

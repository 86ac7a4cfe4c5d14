// Random cases of a fleet, simulated in long stretches and step by step: nothing is lost, requests inside are as many as arrive in the
// time they stay, and both ways serve every request at the same moments.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "tests/support/same_rows.h"
#include "tests/support/serving_mechanisms.h"

namespace toys {

inline void expect_conservation(Fleet& fleet, const ServingStats::Summary& summary,
                                const std::string& which) {
  const Load& load = fleet.lab.made.scenario.load;
  const std::int64_t answers = load.samples;
  if (answers == 1 && load.branches == 1) {  // what each has sent follows from the row
    EXPECT_EQ(
        summary.tokens_in + summary.tokens_out + summary.tokens_refused + summary.tokens_given_up,
        fleet.lab.offered_tokens())
        << which;
  }
  EXPECT_EQ(fleet.lab.sim.stuck(), 0) << which;
  // Prompts are read, found in the cache, or loaded from a tier and found then.
  const auto& tiers = summary.tier_tokens;
  EXPECT_LE(std::accumulate(tiers.begin(), tiers.end(), 0.0), summary.found) << which;
  EXPECT_LE(summary.found, summary.looked_up) << which;
  for (const Replica& replica : fleet.lab.sim.replicas()) {
    EXPECT_EQ(replica.outstanding(), 0) << which;
    EXPECT_EQ(replica.waiting(), 0) << which;
    EXPECT_EQ(replica.pool().free(), replica.pool().total()) << which;
  }
  // Rows do not say when a request was given up, or turned away once it had waited for blocks, or for a replica to be on.
  const bool waited = fleet.journey.pushes || summary.held > 0;
  if (summary.failed > 0 || (waited && summary.shed > 0)) return;
  // Rows have what clients are told, which is later.
  if (fleet.lab.made.scenario.host.front_end_per_message.value > 0) return;
  // Little: requests inside, summed over time, are the times that each was inside.
  double inside = 0;
  for (const RequestRow& row : fleet.lab.rows) {
    if (row.end != RequestEnd::finished) continue;
    inside += row.finish.value - row.arrival.value;
    EXPECT_GE(row.output_tokens, answers) << which;
  }
  EXPECT_NEAR(summary.in_system_seconds, inside, 1e-9 * std::max(1.0, inside)) << which;
}

inline void expect_both_ways_alike(Fleet& fleet, const std::string& which) {
  expect_conservation(fleet, fleet.run(false), which);
  const std::vector<RequestRow> rows = fleet.lab.rows;
  fleet.run(true);
  expect_same(rows, fleet.lab.rows, which);
}

inline void expect_both_ways_alike(Fleet& fleet, const Switched& on, const std::string& number) {
  expect_both_ways_alike(fleet, "case " + number + switch_on(fleet, on));
}

}  // namespace toys

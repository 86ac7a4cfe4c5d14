// Two runs that are to serve every request at the same moments.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "engine/base/moment.h"
#include "engine/serving/figures/serving_rows.h"

namespace toys {

inline void expect_same(const std::vector<engine::RequestRow>& fast,
                        const std::vector<engine::RequestRow>& slow, const std::string& which) {
  std::map<std::int64_t, engine::RequestRow> rows;
  for (const engine::RequestRow& row : fast) rows[row.number] = row;
  ASSERT_EQ(fast.size(), slow.size()) << which;
  for (const engine::RequestRow& row : slow) {
    const engine::RequestRow& other = rows[row.number];
    EXPECT_EQ(row.end, other.end) << which;
    EXPECT_EQ(row.attempts, other.attempts) << which;
    EXPECT_EQ(row.cached_tokens, other.cached_tokens) << which;
    if (row.end != engine::RequestEnd::finished) continue;
    // What is closer than a nanosecond is one moment, on either side of which a step may begin.
    const auto tolerance = [](engine::Seconds time) {
      return engine::kSameMoment + 1e-9 * time.value;
    };
    EXPECT_NEAR(row.first_token.value, other.first_token.value, tolerance(row.first_token))
        << which;
    EXPECT_NEAR(row.finish.value, other.finish.value, tolerance(row.finish)) << which;
  }
}

}  // namespace toys

// Clients of a closed loop that are to fill a share of the KV cache fill it.
#include <gtest/gtest.h>

#include "tests/support/serving_toys.h"

namespace engine {
namespace {

// Steps take as long whoever is in them, so a request stays in proportion to its output.
Scenario half_full() {
  Scenario scenario = toys::served_at(1);
  scenario.load.arrivals = ArrivalKind::closed;
  scenario.load.kv_fraction = 0.5;
  scenario.load.requests = 20'000;
  scenario.load.lengths.prompt = 60;
  scenario.load.lengths.output = 60;
  scenario.serving.kv_blocks = 4000;
  scenario.serving.max_num_seqs = 4096;
  return scenario;
}

double use_of(const Scenario& scenario) {
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome.metrics.kv_use;
}

// At any moment those inside are the ones that stay long: with outputs that spread as much as their mean twice as long as that.
TEST(CacheShare, IsFilledHoweverLengthsAreDistributed) {
  Scenario scenario = half_full();
  for (const LengthKind kind :
       {LengthKind::fixed, LengthKind::uniform, LengthKind::lognormal, LengthKind::zipf}) {
    scenario.load.lengths.distribution = kind;
    EXPECT_NEAR(use_of(scenario), 0.5, 0.06) << name_of(kind);
  }
  scenario.load.lengths.distribution = LengthKind::lognormal;
  for (const double correlation : {-0.9, 0.9}) {
    scenario.load.lengths.correlation = correlation;
    EXPECT_NEAR(use_of(scenario), 0.5, 0.06) << correlation;
  }
  scenario.load.lengths.distribution = LengthKind::fixed;
  scenario.load.classes.high = {.share = 0.2, .output = 300};
  EXPECT_NEAR(use_of(scenario), 0.5, 0.06);
}

// A system prompt is in the cache once, however many clients send it.
TEST(CacheShare, CountsWhatPromptsHaveInCommonOnce) {
  for (const bool caching : {true, false}) {
    for (const std::int64_t groups : {1, 20, 100'000}) {
      for (const std::int64_t replicas : {1, 2}) {
        Scenario scenario = half_full();
        scenario.load.shared_prefix = 48;
        scenario.load.prefix_groups = groups;
        scenario.serving.prefix_caching = caching;
        scenario.serving.replicas = replicas;
        EXPECT_NEAR(use_of(scenario), 0.5, 0.06) << caching << " " << groups << " " << replicas;
      }
    }
  }
}

// A turn lasts until the longest of its answers, and a prompt stays until the longest of its own: those that end sooner leave room.
TEST(CacheShare, CountsThatTheLongestAnswerIsWaitedFor) {
  for (const std::int64_t turns : {1, 4}) {
    for (const std::int64_t together : {2, 8}) {
      for (const LengthKind kind :
           {LengthKind::fixed, LengthKind::uniform, LengthKind::lognormal}) {
        Scenario scenario = half_full();
        scenario.serving.prefix_caching = true;
        scenario.serving.kv_blocks = 12'000;
        scenario.model.max_context = 1 << 20;
        scenario.load.turns = turns;
        (turns > 1 ? scenario.load.branches : scenario.load.samples) = together;
        scenario.load.lengths.distribution = kind;
        EXPECT_NEAR(use_of(scenario), 0.5, 0.06)
            << name_of(kind) << " " << turns << " " << together;
      }
    }
  }
}

}  // namespace
}  // namespace engine

// A capacity is never above what its own run carries: what comes at that rate is answered in the run of the row.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/serving_toys.h"

namespace engine {
namespace {

using Change = std::function<void(Load&)>;
struct NamedLoad {
  const char* name;
  double burstiness;  // of their requests, as variance over mean
  Change change;
};
const std::vector<NamedLoad> kLoads{
    {"requests of one length", 1, [](Load&) {}},
    {"bursts", 9,
     [](Load& load) {
       load.arrivals = ArrivalKind::gamma;
       load.cv = 3;
     }},
    {"an even pace", 1, [](Load& load) { load.arrivals = ArrivalKind::deterministic; }},
    {"lengths of all kinds", 1,
     [](Load& load) {
       load.lengths.distribution = LengthKind::lognormal;
       load.lengths.output_max = 200;
     }},
    {"sessions", 4,
     [](Load& load) {
       load.turns = 4;
       load.think_time = Seconds{5};
     }},
    {"the run as a whole", 1, [](Load& load) { load.measure = MeasureKind::whole; }},
};

Scenario searched(const NamedLoad& load, std::int64_t requests) {
  Scenario scenario = toys::served_at(20);
  scenario.serving.kv_blocks = 100'000;
  scenario.load.requests = requests;
  load.change(scenario.load);
  scenario.capacity.slo.ttft.p95 = Seconds{1};
  return scenario;
}

TEST(CapacityCarried, WhatComesAtTheCapacityIsAnswered) {
  for (const NamedLoad& load : kLoads) {
    for (const std::int64_t requests : {0, 100, 400, 2000, 10'000}) {
      const Scenario scenario = searched(load, requests);
      const Outcome outcome = evaluate(scenario);
      if (outcome.status != Status::ok) {
        EXPECT_EQ(outcome.reason_class, ReasonClass::load)
            << load.name << ", " << requests << ": " << outcome.reason;
        EXPECT_GT(requests, 0) << load.name << ": " << outcome.reason;
        continue;
      }
      const Metrics& metrics = outcome.metrics;
      const double comes = metrics.capacity.value * double(scenario.load.calls_of_session());
      const double chance = 2 * std::sqrt(load.burstiness / metrics.requests_measured);
      EXPECT_GE(metrics.throughput.value, comes * (0.95 - chance)) << load.name << ", " << requests;
      // 5% of the requests may be late.
      EXPECT_GE(metrics.goodput.value, comes * (0.90 - chance)) << load.name << ", " << requests;
    }
  }
}

// 80 a second are served, and two hundred requests with answers of 2 s are over before the first hundred and sixty are through.
TEST(CapacityCarried, TooFewRequestsDoNotDecideIt) {
  Scenario scenario = searched(kLoads[0], 200);
  scenario.serving.max_num_seqs = 160;
  scenario.load.lengths.output = 200;
  const Metrics few = evaluate(scenario).metrics;
  EXPECT_LE(few.capacity.value, 84);
  EXPECT_EQ(few.capacity_decided, 0);
  scenario.load.requests = 0;
  const Metrics enough = evaluate(scenario).metrics;
  EXPECT_NEAR(enough.capacity.value, 80, 4);
  EXPECT_EQ(enough.capacity_decided, 1);
}

}  // namespace
}  // namespace engine

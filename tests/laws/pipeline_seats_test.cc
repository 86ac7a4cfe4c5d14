// How many sequences a pipeline runs at a time: engines count serving.max_num_seqs over all batches in flight, in equal shares, or for each.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/speculation_toys.h"

namespace engine {
namespace {

using toys::sound;

// Most requests that are inside the engine at one time, from their first step until their answer ends.
std::int64_t most_running(std::string_view policy, std::int64_t seats, std::int64_t stages,
                          bool two_pools = false) {
  Scenario scenario = toys::scenario();
  scenario.task = Task::serve;
  scenario.model.layers = 8;
  scenario.parallel.pp = stages;
  scenario.serving.policy =
      PolicyName(std::ranges::find(kPolicies, policy, &PolicyEntry::name) - kPolicies.begin());
  scenario.serving.max_num_seqs = seats;
  scenario.load.arrivals = ArrivalKind::closed;
  scenario.load.clients = 100;
  scenario.load.requests = 400;
  scenario.load.lengths = {.distribution = LengthKind::lognormal, .prompt = 100, .output = 40};
  scenario.load.measure = MeasureKind::whole;
  scenario.output.requests = true;
  scenario.prefill.present = two_pools;
  fill_roles(scenario);
  const Outcome outcome = sound(scenario);
  std::int64_t most = 0;
  const auto begins = [two_pools](const RequestRow& row) {
    return two_pools ? row.first_token : row.scheduled;
  };
  for (const RequestRow& one : outcome.requests) {
    std::int64_t inside = 0;
    for (const RequestRow& other : outcome.requests) {
      inside += begins(other) <= begins(one) && begins(one) < other.finish;
    }
    most = std::max(most, inside);
  }
  return most;
}

TEST(PipelineSeats, AreWhatTheEngineCounts) {
  // Ten in all; ten over four stages, rounded down, in each of four batches; ten in each of four.
  EXPECT_EQ(most_running("vllm_v1", 10, 4), 10);
  EXPECT_EQ(most_running("sglang", 10, 4), 8);
  EXPECT_EQ(most_running("no_evict", 10, 4), 40);
  // Fewer than stages.
  EXPECT_EQ(most_running("vllm_v1", 2, 4), 2);
  EXPECT_EQ(most_running("sglang", 2, 4), 4);
  EXPECT_EQ(most_running("no_evict", 2, 4), 8);
}

TEST(PipelineSeats, OneStageHasThemAll) {
  for (const char* policy : {"vllm_v1", "sglang", "no_evict"}) {
    for (const std::int64_t seats : {1, 7, 10}) {
      EXPECT_EQ(most_running(policy, seats, 1), seats) << policy;
    }
  }
}

TEST(PipelineSeats, AreAsManyForAnswersToPromptsReadElsewhere) {
  EXPECT_EQ(most_running("vllm_v1", 10, 4, true), 10);
  EXPECT_EQ(most_running("vllm_v1", 2, 4, true), 2);
}

}  // namespace
}  // namespace engine

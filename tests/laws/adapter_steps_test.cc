// Which adapters a step of a served load has: those of the sequences that take part in it.
#include <gtest/gtest.h>

#include "engine/evaluate.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

Scenario served(std::int64_t adapters) {
  Scenario scenario = toys::scenario();
  scenario.task = Task::serve;
  scenario.load.requests = 500;
  scenario.load.lengths = {.prompt = 200, .output = 40};
  scenario.load.adapters = adapters;
  return scenario;
}

// A step has the adapters of those that take part in it: where prompts are read on their own, not those of sequences that wait
// for them, of which there are twenty here.
TEST(ServedAdapters, OfThoseThatSitAStepOutAreNotInIt) {
  for (const auto policy : {policy_named("vllm_v0"), policy_named("sglang")}) {
    Scenario scenario = served(40);
    scenario.serving.policy = policy;
    scenario.load.arrivals = ArrivalKind::closed;
    scenario.load.clients = 21;
    scenario.load.lengths.distribution = LengthKind::lognormal;  // not all of a batch end together
    const auto reading = [&](std::int64_t adapters) {
      scenario.load.adapters = adapters;
      const Outcome outcome = evaluate(scenario);
      EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
      double bytes = 0, calls = 0;
      for (const KernelRow& row : outcome.kernels) {
        if (row.phase != Phase::prefill || row.op != OpName::adapter) continue;
        bytes += row.work.bytes.value;
        calls += row.work.calls;
      }
      EXPECT_LE(outcome.metrics.adapters_per_step, outcome.metrics.batch_mean) << name_of(policy);
      return bytes / calls;
    };
    // Mostly one prompt at a time, with one adapter.
    EXPECT_LT(reading(40), 1.5 * reading(1)) << name_of(policy);
  }
}

}  // namespace
}  // namespace engine

// Preempted requests of a deployment that only writes: their KV waits in the host's memory (SGLang), or they are read again.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/shipped.h"
#include "tests/support/speculation_toys.h"

namespace engine {
namespace {

using toys::sound;

// Four prompts of 1,500 tokens fit into 400 blocks of 16, and not their answers.
Scenario crowded() {
  Scenario scenario = toys::scenario();
  scenario.task = Task::serve;
  scenario.serving.policy = policy_named("sglang");
  scenario.serving.kv_blocks = 400;
  scenario.load.rate = RequestsPerSecond{20};
  scenario.load.requests = 200;
  scenario.load.lengths = {.prompt = 1500, .output = 400};
  scenario.load.measure = MeasureKind::whole;
  scenario.transfer.initiative = TransferInitiative::push;
  scenario.device.host_link = {.topology = Topology::fabric,
                               .bandwidth = BytesPerSecond{50e9},
                               .latency = Seconds{1e-6},
                               .devices = 2};
  scenario.output.requests = true;
  scenario.prefill.present = true;
  fill_roles(scenario);
  scenario.prefill.deployment.serving.kv_blocks = 4000;
  return scenario;
}

double prompt_seconds_in_main(const Outcome& outcome) {
  double seconds = 0;
  for (const KernelRow& row : outcome.kernels) {
    if (row.role == DeploymentRole::main && row.phase == Phase::prefill) {
      seconds += row.work.time.value;
    }
  }
  return seconds;
}

TEST(PreemptedToHost, NothingIsReadAgain) {
  Scenario scenario = crowded();
  const Outcome read = sound(scenario);
  EXPECT_GT(read.metrics.preemptions, 10);
  EXPECT_GT(prompt_seconds_in_main(read), 0);
  scenario.serving.preempted_to_host = true;
  const Outcome kept = sound(scenario);
  EXPECT_GT(kept.metrics.preemptions, 10);
  EXPECT_EQ(prompt_seconds_in_main(kept), 0);
  EXPECT_EQ(kept.metrics.requests_finished, read.metrics.requests_finished);
  EXPECT_LT(kept.metrics.makespan, read.metrics.makespan);
  for (const RequestRow& row : kept.requests) {
    EXPECT_EQ(row.output_tokens, 400);
    EXPECT_LE(row.received, row.first_token);
  }
}

// With KV that is as fast as nothing only the order of steps differs; with a slow link requests are late by the way back.
TEST(PreemptedToHost, TheWayBackTakesAsLongAsTheLinkNeeds) {
  const auto makespan = [](double bandwidth) {
    Scenario scenario = crowded();
    scenario.serving.preempted_to_host = true;
    scenario.device.host_link.bandwidth = BytesPerSecond{bandwidth};
    return sound(scenario).metrics.makespan;
  };
  EXPECT_LT(makespan(50e9), makespan(1e9));
  EXPECT_LT(makespan(1e9), makespan(1e8));
}

// Who was preempted comes back before anybody new gets room: a preempted request decodes on before later ones have their first token.
TEST(PreemptedToHost, ComesBackBeforeNewRequests) {
  Scenario scenario = crowded();
  scenario.serving.preempted_to_host = true;
  scenario.serving.reserved_decode_tokens = 0;
  const Outcome outcome = sound(scenario);
  for (const RequestRow& one : outcome.requests) {
    if (one.preemptions == 0) continue;
    int overtaken = 0;
    for (const RequestRow& other : outcome.requests) {
      overtaken += other.received > one.received && other.finish < one.finish;
    }
    // No more than are inside with it.
    EXPECT_LE(overtaken, 4) << one.number;
  }
}

// A failure loses what waited in the host's memory as well. Whoever begins anew then, and has its first token made anew, has no other one:
// what its reader made is dropped, as of all others.
TEST(PreemptedToHost, IsLostWithItsReplica) {
  Scenario scenario = crowded();
  scenario.serving.preempted_to_host = true;
  scenario.serving.replicas = 2;
  scenario.transfer.first_token = FirstToken::remade;
  scenario.load.requests = 1000;
  scenario.serving.failures = {.mean_time_to_failure = Seconds{3},
                               .mean_time_to_repair = Seconds{0.5},
                               .attempts = 100,
                               .answers = AfterFailure::restart};
  const Outcome outcome = sound(scenario);
  std::int64_t both = 0;
  for (const RequestRow& row : outcome.requests) {
    both += row.attempts > 1 && row.preemptions > 0;
    EXPECT_GT(row.first_token, row.received) << row.number;
    EXPECT_EQ(row.output_tokens, 400) << row.number;
  }
  EXPECT_GT(both, 20);
}

// Where nobody is preempted, and where nothing is handed over, it changes nothing.
TEST(PreemptedToHost, CountsWhereSomebodyIsPreempted) {
  Scenario roomy = crowded();
  roomy.load.rate = RequestsPerSecond{0.5};
  EXPECT_EQ(sound(roomy).metrics.preemptions, 0);
  Scenario kept = roomy;
  kept.serving.preempted_to_host = true;
  toys::expect_same_figures(sound(roomy), sound(kept), 0);
  EXPECT_TRUE(toys::shipped("serving", "sglang").serving.preempted_to_host);
  EXPECT_FALSE(toys::shipped("serving", "vllm-v1").serving.preempted_to_host);
}

}  // namespace
}  // namespace engine

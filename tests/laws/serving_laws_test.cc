// Laws any queueing system obeys, whatever its policy: nothing is lost, time adds up, and where theory
// knows the answer the simulation finds it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/support/serving_laboratory.h"

namespace engine {
namespace {

using toys::Laboratory;

TEST(ServingLaws, NothingIsLostAndTimeAddsUp) {
  for (std::uint64_t number = 2000; number < 2400; ++number) {
    Laboratory lab(toys::random_case(number));
    const ServingStats::Summary summary = lab.run();
    const Scenario& scenario = lab.made.scenario;
    const std::string which = "case " + std::to_string(number);
    // Every request is answered or refused.
    const double total =
        scenario.load.arrivals == ArrivalKind::trace
            ? std::min<double>(double(scenario.load.requests),
                               double(lab.made.resources.find_trace("toy")->size()))
            : double(scenario.load.requests);
    EXPECT_EQ(summary.finished + summary.refused, total) << which;
    EXPECT_EQ(summary.tokens_in + summary.tokens_out + summary.tokens_refused, lab.offered_tokens())
        << which;
    // All blocks came back; what is left in use is nothing, cache counts as free.
    for (const Replica& replica : lab.sim.replicas()) {
      EXPECT_EQ(replica.pool().free(), replica.pool().total()) << which;
      EXPECT_EQ(replica.outstanding(), 0) << which;
      EXPECT_EQ(replica.waiting(), 0) << which;
    }
    // Busy and idle make up the time of every lane.
    const double lanes = double(scenario.serving.replicas * scenario.parallel.pp);
    EXPECT_NEAR((summary.busy + lab.sim.idle_seconds()) / (lab.sim.makespan() * lanes), 1, 1e-9)
        << which;
  }
}

TEST(ServingLaws, TokensGoInAndComeOut) {
  for (std::uint64_t number = 3000; number < 3200; ++number) {
    toys::RandomCase made = toys::random_case(number);
    made.scenario.output.requests = true;
    made.scenario.load.warmup = made.scenario.load.window = Seconds{0};
    const Outcome outcome = evaluate(made.scenario, made.resources);
    ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
    double finished = 0;
    for (const RequestRow& row : outcome.requests) {
      if (row.end == RequestEnd::refused) continue;
      finished += 1;
      EXPECT_LE(row.arrival, row.scheduled);
      EXPECT_LT(row.scheduled, row.first_token);
      EXPECT_LE(row.first_token, row.finish);
      EXPECT_EQ(row.output_tokens == 1, row.first_token == row.finish);
      EXPECT_LT(row.cached_tokens, row.prompt_tokens);
    }
    EXPECT_EQ(finished, outcome.metrics.requests_finished);
    // The kernels table is the time of all steps.
    double kernels = 0;
    for (const KernelRow& row : outcome.kernels) kernels += row.work.exposed().value;
    const Metrics& metrics = outcome.metrics;
    const double lanes = double(made.scenario.serving.replicas * made.scenario.parallel.dp *
                                made.scenario.parallel.pp);
    const double busy = metrics.utilization * metrics.makespan.value * lanes;
    EXPECT_NEAR(kernels / busy, 1, 1e-9) << "case " << number;
  }
}

// One request at a time, a fixed service time: 1 seat, prompts and outputs of one length, 10 ms steps.
Scenario single_server(double load_share, std::int64_t output) {
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.serving.max_num_seqs = 1;
  scenario.load.arrivals = ArrivalKind::poisson;
  scenario.load.trace.clear();
  scenario.load.requests = 200'000;
  scenario.load.lengths.prompt = 8;
  scenario.load.lengths.output = output;
  scenario.load.rate = RequestsPerSecond{load_share / (0.01 * double(output))};
  scenario.output.requests = false;
  return scenario;
}

TEST(ServingLaws, OneSeatAndEqualRequestsAreMD1) {
  for (const double share : {0.3, 0.6, 0.8}) {
    const Outcome outcome = evaluate(single_server(share, 10));
    ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
    const double service = 0.1;
    // Pollaczek and Khinchine: rho / (2 (1 - rho)) service times.
    const double expected = share / (2 * (1 - share)) * service;
    EXPECT_NEAR(outcome.metrics.queue.value / expected, 1, 0.03) << share;
    EXPECT_NEAR(outcome.metrics.utilization, share, 0.01) << share;
  }
}

TEST(ServingLaws, OneSeatAndExponentialRequestsAreMM1) {
  // Outputs with the spread of an exponential: many short steps, so whole tokens hardly matter.
  Scenario scenario = single_server(0.7, 400);
  auto trace = std::make_shared<Trace>();
  double time = 0;
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    time += exponential(5, Stream::arrivals, i) * 4.0 / 0.7;
    trace->arrival.push_back(time);
    trace->prompt.push_back(8);
    trace->output.push_back(std::int32_t(1 + 400 * exponential(5, Stream::output_lengths, i)));
  }
  Resources resources;
  resources.traces["toy"] = trace;
  scenario.load.arrivals = ArrivalKind::trace;
  scenario.load.trace = "toy";
  const Outcome outcome = evaluate(scenario, resources);
  ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
  const double expected = 0.7 / 0.3 * 4.0;
  EXPECT_NEAR(outcome.metrics.queue.value / expected, 1, 0.05);
}

TEST(ServingLaws, LittlesLaw) {
  for (const PolicyName policy :
       {policy_named("vllm_v1"), policy_named("sarathi"), policy_named("sglang")}) {
    Scenario scenario = single_server(0.5, 20);
    scenario.serving.policy = policy;
    scenario.serving.max_num_seqs = 64;
    scenario.load.requests = 20'000;
    scenario.load.rate = RequestsPerSecond{100};
    scenario.load.measure = MeasureKind::whole;
    const Outcome outcome = evaluate(scenario);
    ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
    const double rate = outcome.metrics.requests_finished / outcome.metrics.makespan.value;
    EXPECT_NEAR(outcome.metrics.concurrency / (rate * outcome.metrics.e2e.value), 1, 1e-9);
  }
}

TEST(ServingLaws, AClosedLoopHoldsItsClients) {
  Scenario scenario = single_server(0.5, 20);
  scenario.serving.max_num_seqs = 64;
  scenario.load.arrivals = ArrivalKind::closed;
  scenario.load.clients = 16;
  scenario.load.requests = 1600;
  const Outcome outcome = evaluate(scenario);
  ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
  EXPECT_NEAR(outcome.metrics.concurrency, 16, 0.2);
  // Everyone in step: 20 steps of 10 ms each, no queue.
  EXPECT_NEAR(outcome.metrics.e2e_p50.value, 0.2, 1e-9);
  EXPECT_NEAR(outcome.metrics.throughput.value, 80, 1e-6);
}

TEST(ServingLaws, AFrontEndDelaysAnswersAndNextRequests) {
  Scenario scenario = single_server(0.5, 20);
  scenario.serving.max_num_seqs = 64;
  scenario.load.arrivals = ArrivalKind::closed;
  scenario.load.clients = 16;
  scenario.load.requests = 1600;
  scenario.host.request_latency = Seconds{0.05};
  const Outcome outcome = evaluate(scenario);
  ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
  // 20 steps of 10 ms in the engine, and 50 ms outside it before the next round.
  EXPECT_NEAR(outcome.metrics.e2e_p50.value, 0.25, 1e-9);
  EXPECT_NEAR(outcome.metrics.ttft_p50.value, 0.06, 1e-9);
  EXPECT_NEAR(outcome.metrics.requests_finished / outcome.metrics.makespan.value, 64, 1);
}

TEST(ServingLaws, MoreLoadIsNeverFaster) {
  double before = 0;
  for (const double share : {0.2, 0.5, 0.8, 0.95, 1.3}) {
    Scenario scenario = single_server(share, 10);
    scenario.load.requests = 5000;
    const Outcome outcome = evaluate(scenario);
    EXPECT_GE(outcome.metrics.ttft_p99.value, before);
    before = outcome.metrics.ttft_p99.value;
    if (share < 0.3) {
      EXPECT_EQ(outcome.saturation, Saturation::stable);
    }
    if (share > 1.2) {
      EXPECT_EQ(outcome.saturation, Saturation::overloaded);
    }
  }
}

TEST(ServingLaws, EveryDesignMeetsTheSameRequests) {
  Scenario scenario = single_server(0.5, 10);
  scenario.load.lengths.distribution = LengthKind::lognormal;
  scenario.load.requests = 500;
  scenario.output.requests = true;
  Scenario other = scenario;
  other.serving.policy = policy_named("sglang");
  other.serving.max_num_seqs = 64;
  other.device.memory_bandwidth = other.device.memory_bandwidth * 2;
  const Outcome a = evaluate(scenario), b = evaluate(other);
  for (std::int64_t n = 0; n < 500; ++n) {
    const RequestRow left = toys::row_of(a, n), right = toys::row_of(b, n);
    EXPECT_EQ(left.arrival, right.arrival);
    EXPECT_EQ(left.prompt_tokens, right.prompt_tokens);
    EXPECT_EQ(left.output_tokens, right.output_tokens);
  }
}

TEST(ServingLaws, ACapacityIsTheHighestRateThatMeetsItsLimits) {
  Scenario scenario = single_server(0.5, 10);
  scenario.load.requests = 20'000;
  // M/D/1 with 0.1 s service: mean queue rho / (2 (1 - rho)) * 0.1 s, and a prompt step of 10 ms.
  scenario.capacity.slo.ttft.mean = Seconds{0.11};  // queue 0.1 s: rho = 2/3
  const Outcome outcome = evaluate(scenario);
  ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
  EXPECT_NEAR(outcome.metrics.capacity.value, 2.0 / 3 * 10, 0.2);
  EXPECT_EQ(outcome.metrics.capacity_monotone, 1);
  EXPECT_EQ(outcome.metrics.slo_met, 1);
  EXPECT_LE(outcome.metrics.ttft.value, 0.11);
}

}  // namespace
}  // namespace engine

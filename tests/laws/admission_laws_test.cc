// Who is turned away: only those who would be late by what is known when they come.
#include <gtest/gtest.h>

#include <string>

#include "engine/serving/fleet/encoders.h"
#include "tests/support/serving_toys.h"

namespace engine {
namespace {

using toys::served_at;

// Sessions of ten turns of about 0.1 s of reading each, on a device of 10 TFLOP/s: with all turns before it, the last takes 1 s.
Scenario conversations() {
  Scenario scenario = served_at(0.1);
  scenario.device.peak.bf16 = scenario.device.peak.fp16 = FlopsPerSecond{1e13};
  scenario.serving.prefix_caching = true;
  scenario.serving.kv_blocks = 100'000;
  scenario.model.max_context = 1 << 20;
  scenario.load.turns = 10;
  scenario.load.think_time = Seconds{1};
  scenario.load.requests = 1000;
  scenario.load.lengths = {.prompt = 400, .output = 20};
  return scenario;
}

// Later turns are read in no more time than the first one, so hardly anybody is late, and hardly anybody is turned away.
TEST(AdmissionLaws, WhatIsCachedTakesNoTimeToRead) {
  Scenario scenario = conversations();
  scenario.slo.ttft.p99 = 2.0 * evaluate(scenario).metrics.ttft_p99;
  ASSERT_LT(scenario.slo.ttft.p99.value, 0.7);
  scenario.serving.admission.shed_late = true;
  for (const Ordering ordering : {Ordering::fcfs, Ordering::slo}) {
    scenario.serving.ordering = ordering;
    EXPECT_LE(evaluate(scenario).metrics.requests_shed, 10) << int(ordering);
  }
  // Nor where others write, whoever sets blocks aside for them.
  Scenario two_pools = scenario;
  two_pools.prefill.present = true;
  fill_roles(two_pools);
  for (const TransferInitiative initiative : {TransferInitiative::pull, TransferInitiative::push}) {
    two_pools.transfer.initiative = initiative;
    EXPECT_LE(evaluate(two_pools).metrics.requests_shed, 10) << int(initiative);
  }
  // Without a cache the history is read again, and later turns are too late.
  scenario.serving.prefix_caching = false;
  EXPECT_GT(evaluate(scenario).metrics.requests_shed, 100);
}

// One that reads, and one that writes eight answers of 20 steps at a time: 40 a second. Three times as many come.
Scenario few_seats() {
  Scenario scenario = served_at(120);
  scenario.serving.max_num_seqs = 8;
  scenario.serving.kv_blocks = 10'000;
  scenario.load.requests = 3000;
  scenario.load.lengths.distribution = LengthKind::lognormal;  // not all of a batch end together
  scenario.prefill.present = true;
  fill_roles(scenario);
  scenario.prefill.deployment.serving.max_num_seqs = 64;
  scenario.transfer.first_token = FirstToken::decode;
  return scenario;
}

// Whoever is let in is answered in time, most of the time, wherever the bottleneck is.
TEST(AdmissionLaws, SeatsOfWhoWritesCount) {
  for (const TransferInitiative initiative : {TransferInitiative::pull, TransferInitiative::push}) {
    Scenario scenario = few_seats();
    scenario.transfer.initiative = initiative;
    scenario.slo.ttft.p95 = Seconds{0.5};
    const Metrics open = evaluate(scenario).metrics;
    EXPECT_LT(open.slo_attainment, 0.2) << int(initiative);
    scenario.prefill.deployment.serving.admission.shed_late = true;
    scenario.serving.admission.shed_late = true;
    const Metrics shed = evaluate(scenario).metrics;
    EXPECT_GT(shed.requests_shed, 1000) << int(initiative);
    EXPECT_GT(shed.goodput.value, 20) << int(initiative);
    EXPECT_LT(shed.ttft_p95.value, 1) << int(initiative);
  }
}

// No more wait for a seat than may, but for those that were being read when the last of them came.
TEST(AdmissionLaws, TheQueueOfWhoWritesIsNoLongerThanItMayBe) {
  for (const TransferInitiative initiative : {TransferInitiative::pull, TransferInitiative::push}) {
    Scenario scenario = few_seats();
    scenario.transfer.initiative = initiative;
    scenario.serving.admission.max_queue = 5;
    scenario.prefill.deployment.serving.admission.max_queue = 5;
    const Metrics metrics = evaluate(scenario).metrics;
    // 120 a second come, and 40 are answered.
    EXPECT_NEAR(metrics.requests_shed / 3000, 2.0 / 3, 0.05) << int(initiative);
    // Five before it and some that were being read, of 25 ms each, and its own prompt.
    EXPECT_LT(metrics.ttft_p95.value, 0.6) << int(initiative);
  }
}

// An encoder that takes 0.1 s for a request, of which 20 come in a second: those who would wait too long for it are told so.
TEST(AdmissionLaws, EncodersCount) {
  for (const std::size_t together : {1, 4}) {
    Encoders::Setup setup{.replicas = 1, .seconds = {}, .sending = 0.01, .latency = 0.001};
    for (std::size_t i = 1; i <= together; ++i) setup.seconds.push_back(0.1 * double(i));
    Encoders encoders;
    encoders.reset(setup);
    EXPECT_NEAR(encoders.would_be_there(1), 1.111, 1e-12);
    for (int i = 0; i < 5; ++i) {
      if (together == 1) {
        const double told = encoders.would_be_there(1);
        EXPECT_NEAR(encoders.take(1), told, 1e-12) << i;
      } else {
        encoders.enqueue({.replica = 0, .slot = i, .arrival = 1});
        encoders.start(1, [](const Encoders::Request&, double) {});
      }
    }
    // Five before it, of which some are taken together: in any case 0.1 s each.
    EXPECT_NEAR(encoders.would_be_there(1), 1.611, 1e-12) << together;
  }
}

}  // namespace
}  // namespace engine

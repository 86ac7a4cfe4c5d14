// Who is turned away: only those who would be late by what is known when they come.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/serving_toys.h"

namespace engine {
namespace {

using toys::served_at;

// Sessions of ten turns whose prompts take longer to read than the limit allows, unless the turns before them are cached.
Scenario conversations() {
  Scenario scenario = served_at(1);
  scenario.serving.prefix_caching = true;
  scenario.serving.kv_blocks = 100'000;
  scenario.model.max_context = 1 << 20;
  scenario.load.turns = 10;
  scenario.load.think_time = Seconds{1};
  scenario.load.requests = 1000;
  scenario.load.lengths = {.prompt = 400, .output = 20};
  return scenario;
}

// Later turns are read in no more time than the first one, so nobody is late, and nobody is turned away.
TEST(AdmissionLaws, WhatIsCachedTakesNoTimeToRead) {
  Scenario scenario = conversations();
  const Metrics open = evaluate(scenario).metrics;
  // Between the time of a new turn and that of a whole history.
  scenario.slo.ttft.p99 = 1.5 * open.ttft_p99;
  scenario.serving.admission.shed_late = true;
  for (const Ordering ordering : {Ordering::fcfs, Ordering::slo}) {
    scenario.serving.ordering = ordering;
    const Metrics metrics = evaluate(scenario).metrics;
    EXPECT_EQ(metrics.requests_shed, 0) << int(ordering);
    EXPECT_EQ(metrics.slo_met, 1) << int(ordering);
  }
  // Nor where others write, whoever sets blocks aside for them.
  scenario.prefill.present = true;
  fill_roles(scenario);
  for (const TransferInitiative initiative : {TransferInitiative::pull, TransferInitiative::push}) {
    scenario.transfer.initiative = initiative;
    EXPECT_EQ(evaluate(scenario).metrics.requests_shed, 0) << int(initiative);
  }
  // Without a cache the history is read again, and most are too late.
  scenario.prefill = {};
  scenario.serving.prefix_caching = false;
  EXPECT_GT(evaluate(scenario).metrics.requests_shed, 100);
}

}  // namespace
}  // namespace engine

#include "engine/step/step_table.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <vector>

#include "engine/deploy.h"
#include "engine/evaluate.h"
#include "engine/step/together.h"
#include "tests/support/hybrid_toy.h"
#include "tests/support/random_load.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

// What is kept from point to point: here the step times of the last one.
Outcome evaluate_after(Scratch& scratch, const Scenario& scenario, const Resources& resources) {
  Outcome outcome;
  WorkMeter work;
  evaluate_into(scenario, resources, outcome, work, scratch);
  return outcome;
}

// What ran before must not show in a single bit.
TEST(StepTable, RowsDoNotDependOnWhoUsedTheTableBefore) {
  using Values = std::array<std::uint64_t, kFigures>;
  Scratch scratch;
  for (std::uint64_t number = 5000; number < 5060; ++number) {
    toys::RandomCase made = toys::random_case(number);
    // An engine that lists every block anew: what its host could save follows from the tokens in the caches.
    if (number % 3 == 0) made.scenario.host.step_per_kv_token = Seconds{1e-6};
    const Outcome alone = evaluate(made.scenario, made.resources);
    // The same machine, or one with more memory, under another load, then the point itself.
    toys::RandomCase other = made;
    other.scenario.seed += 1;
    other.scenario.load.rate = other.scenario.load.rate * 1.7;
    other.scenario.load.lengths.prompt += 5;
    if (number % 2 == 0) {
      other.scenario.device.memory_capacity = other.scenario.device.memory_capacity * 1.5;
    }
    evaluate_after(scratch, other.scenario, other.resources);
    const Outcome after = evaluate_after(scratch, made.scenario, made.resources);
    EXPECT_EQ(std::bit_cast<Values>(alone.metrics), std::bit_cast<Values>(after.metrics)) << number;
    EXPECT_EQ(alone.kernels, after.kernels) << number;
    EXPECT_EQ(alone.bound, after.bound) << number;
    // And once more after a point of another machine.
    evaluate_after(scratch, toys::random_case(number + 1000).scenario, made.resources);
    EXPECT_EQ(evaluate_after(scratch, made.scenario, made.resources).kernels, alone.kernels)
        << number;
  }
}

// An engine that lists every block anew: what its host adds follows from the tokens in the caches of this run, and of no earlier one.
TEST(StepTable, WhatAFreeHostWouldSaveIsOfThisRunAlone) {
  Scenario scenario = toys::scenario();
  scenario.host.asynchronous = false;
  scenario.host.step_per_kv_token = Seconds{1e-6};
  const Fabric fabric = fabric_of(scenario.cluster, scenario.device);
  const ModelShard shard = shard_of(scenario.model, scenario.parallel, scenario.quant);
  const StepContext context{scenario.device, fabric, shard, scenario.host};
  StepTable table;
  std::vector<KernelRow> rows;
  Savings first;
  for (int run = 0; run < 3; ++run) {
    table.reset(context);
    DecodeLine own;
    const DecodeLine& line =
        table.decode_line_again({.sequences = 2, .context = 200}, kNoLine, own);
    table.count_decode(line, 10, 2000, 0, 10 * line.step(200, 0));
    table.report(rows);
    if (run == 0) first = table.saved();
    EXPECT_GE(first[Bound::host].value, 10 * 200e-6);
    EXPECT_EQ(table.saved(), first) << run;
  }
}

// A line that is kept, or goes on, is the one that is said anew: also in a run at another pace, whatever was kept in the one before,
// and where layers have a window.
TEST(StepTable, ALineIsTheSameWhetherItWasKeptOrNot) {
  for (const std::int64_t window : {0, 64}) {
    Scenario scenario = toys::scenario();
    scenario.model.window = window;
    const Fabric fabric = fabric_of(scenario.cluster, scenario.device);
    const ModelShard shard = shard_of(scenario.model, scenario.parallel, scenario.quant);
    const StepContext context{scenario.device, fabric, shard, scenario.host};
    StepTable table;
    double first_fixed = 0;
    for (const double scale : {1.0, 1.5}) {
      table.reset(context, {scale, scale, scale});
      const DecodeLine* last = &kNoLine;
      DecodeLine own, anew;
      // The second time all lines are known.
      for (int i = 0; i < 400; ++i) {
        const std::int64_t sequences = 1 + (i % 200) / 20;
        const double tokens = double(sequences) * double(3 + 17 * (i % 20));
        const Decodes decodes{.sequences = sequences,
                              .context = tokens,
                              .window = std::min(tokens, 64.0 * double(sequences))};
        last = &table.decode_line_again(decodes, *last, own);
        table.decode_line(decodes, anew);
        ASSERT_EQ(last->sequences, sequences) << i;
        ASSERT_EQ(last->cell, anew.cell) << i;
        ASSERT_EQ(last->context_end, anew.context_end) << i;
        ASSERT_EQ(last->step(tokens, decodes.window), anew.step(tokens, decodes.window)) << i;
        ASSERT_EQ(last->device(0, 0), anew.device(0, 0)) << i;
      }
      if (scale == 1) first_fixed = anew.fixed;
      EXPECT_EQ(anew.fixed, first_fixed * scale);
    }
  }
}

// The gaps of a graph are as many as its kernels, attention included.
TEST(StepTable, AGapFollowsEveryKernelOfADecode) {
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.host.kernel_gap = Seconds{1e-6};
  scenario.host.mode = HostMode::graph;
  double gaps = 0, kernels = 0;
  for (const KernelRow& row : evaluate(scenario, toys::trace({{0, 8, 4}})).kernels) {
    if (row.phase != Phase::decode || row.family == Family::host) continue;
    (row.family == Family::gap ? gaps : kernels) += row.work.calls;
  }
  EXPECT_GT(gaps, 0);
  EXPECT_EQ(gaps, kernels);
}

// Attention of decodes hides some of that of prompts, or the other way round; scans of a hybrid stay as they are.
TEST(StepTable, OverlappedAttentionHidesAttentionAlone) {
  const Scenario scenario = toys::hybrid();
  const Fabric fabric = fabric_of(scenario.cluster, scenario.device);
  ModelShard shard = shard_of(scenario.model, scenario.parallel, scenario.quant);
  const StepContext context{scenario.device, fabric, shard, scenario.host};
  const auto attention = [&](const BatchShape& batch) {
    OpList all, wanted;
    attention_ops(shard, batch, all);
    for (const PlannedOp& op : all) {
      if (is_attention(op.family)) wanted.add(op);
    }
    return device_time(wanted, context, Phase::mixed, nullptr).total().value;
  };
  for (const std::int64_t before : {0, 1024, 16384}) {
    for (const std::int64_t decodes : {1, 32, 256}) {
      BatchShape prompts, writing;
      add_prefill(prompts, 1, 1024, before, shard.model->window);
      add_decode(writing, decodes, 4096, shard.model->window);
      BatchShape batch = writing;
      add_prefill(batch, 1, 1024, before, shard.model->window);
      const double one = attention(prompts), other = attention(writing);
      StepTable table;
      shard.overlapped_attention = false;
      table.reset(context);
      const double apart = table.run_mixed(batch);
      shard.overlapped_attention = true;
      table.reset(context);
      const double together = table.run_mixed(batch);
      EXPECT_NEAR(apart - together, one + other - time_together(one, other), 1e-3 * (one + other))
          << before << " " << decodes;
    }
  }
}

}  // namespace
}  // namespace engine

// Prefixes of models with scans in caches, in tiers below them and on their way to another pool: a state goes with the KV.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "engine/chosen_calibration.h"
#include "engine/comm/sends.h"
#include "engine/evaluate.h"
#include "engine/memory/footprint.h"
#include "tests/support/calibrations.h"
#include "tests/support/hybrid_toy.h"
#include "tests/support/shipped.h"

namespace engine {
namespace {

Scenario hybrid() {
  Scenario point = toys::hybrid();
  point.task = Task::serve;
  point.output.requests = true;
  return point;
}

// Conversations after a system prompt that all of them share.
Scenario conversations() {
  Scenario point = hybrid();
  point.serving.prefix_caching = true;
  point.load.turns = 4;
  point.load.think_time = Seconds{2};
  point.load.rate = RequestsPerSecond{1};
  point.load.requests = 240;
  point.load.shared_prefix = 1000;
  point.load.measure = MeasureKind::whole;
  point.load.lengths = {.distribution = LengthKind::fixed, .prompt = 1500, .output = 50};
  return point;
}

Metrics figures(const Scenario& point) {
  const Outcome outcome = evaluate(point, toys::transfer_resources());
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome.metrics;
}

double state_bytes(const Scenario& point) {
  return kv_bytes(shard_of(point.model, point.parallel, point.quant), 0).value;
}
double token_bytes(const Scenario& point) {
  const ModelShard shard = shard_of(point.model, point.parallel, point.quant);
  return kv_bytes(shard, 1).value - kv_bytes(shard, 0).value;
}

TEST(ScanCache, WhatIsFoundIsNotReadAgain) {
  Scenario point = conversations();
  const Metrics with = figures(point);
  point.serving.prefix_caching = false;
  const Metrics without = figures(point);
  EXPECT_GT(with.prefix_hit_rate, 0.5);
  EXPECT_LT(with.ttft, without.ttft);
  EXPECT_LE(with.e2e, without.e2e);
}

// The first request knows nothing, the second knows that prompts part; a turn goes on from the last block of the one before.
TEST(ScanCache, HitsAreThoseOfBlocksAlmost) {
  const Scenario point = conversations();
  const Outcome found = evaluate(point, toys::transfer_resources());
  Scenario attending = point;
  attending.model.scan = {};
  const Outcome all = evaluate(attending, toys::transfer_resources());
  ASSERT_EQ(found.requests.size(), all.requests.size());
  double missed = 0, tokens = 0;
  for (std::size_t i = 0; i < found.requests.size(); ++i) {
    const RequestRow& row = found.requests[i];
    ASSERT_EQ(row.number, all.requests[i].number);
    EXPECT_LE(row.cached_tokens, all.requests[i].cached_tokens) << row.number;
    missed += double(all.requests[i].cached_tokens - row.cached_tokens);
    tokens += double(row.prompt_tokens);
  }
  EXPECT_GT(missed, 0);
  EXPECT_LT(missed / tokens, 0.03);
}

// Each prompt of a trace comes twice and does not fill its last block. A trace that lists that block says no more than one that
// does not.
TEST(ScanCache, APromptThatComesAgainIsFoundUpToItsLastWholeBlock) {
  for (const std::int32_t prompt : {1605, 1615}) {
    for (const bool all_listed : {true, false}) {
      auto trace = std::make_shared<Trace>();
      trace->block_tokens = 16;
      trace->first_block.push_back(0);
      for (int i = 0; i < 20; ++i) {
        trace->arrival.push_back(2.0 * i);
        trace->prompt.push_back(prompt);
        trace->output.push_back(4);
        for (int block = 0; block < (all_listed ? (prompt + 15) / 16 : prompt / 16); ++block) {
          trace->blocks.push_back(std::uint64_t(1000 * (i / 2) + block + 1));
        }
        trace->first_block.push_back(std::uint32_t(trace->blocks.size()));
      }
      Scenario point = hybrid();
      point.serving.prefix_caching = true;
      point.serving.block_size = 16;
      point.load.arrivals = ArrivalKind::trace;
      point.load.trace = "toy";
      Resources resources = toys::transfer_resources();
      resources.traces["toy"] = trace;
      const Outcome outcome = evaluate(point, resources);
      ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
      const double found = double(prompt / 16 * 16) / double(prompt) / 2;
      EXPECT_NEAR(outcome.metrics.prefix_hit_rate, found, 1e-9) << prompt << " " << all_listed;
    }
  }
}

// A trace whose blocks are the engine's: each prompt comes twice, and the second time all but its last block is found.
TEST(ScanCache, APromptOfWholeBlocksIsFoundButForItsLast) {
  constexpr std::int32_t size = 512, blocks = 4;
  auto trace = std::make_shared<Trace>();
  trace->block_tokens = size;
  trace->first_block.push_back(0);
  for (int i = 0; i < 20; ++i) {
    trace->arrival.push_back(2.0 * i);
    trace->prompt.push_back(size * blocks);
    trace->output.push_back(4);
    for (int block = 0; block < blocks; ++block) {
      trace->blocks.push_back(std::uint64_t(1000 * (i / 2) + block + 1));
    }
    trace->first_block.push_back(std::uint32_t(trace->blocks.size()));
  }
  Scenario point = hybrid();
  point.serving.prefix_caching = true;
  point.serving.block_size = size;
  point.load.arrivals = ArrivalKind::trace;
  point.load.trace = "toy";
  Resources resources = toys::transfer_resources();
  resources.traces["toy"] = trace;
  const Outcome outcome = evaluate(point, resources);
  ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
  EXPECT_NEAR(outcome.metrics.prefix_hit_rate, 0.5 * (blocks - 1) / blocks, 1e-9);
}

// Questions behind one system prompt: the first to ask knows nothing, the second finds keys and values and no state, and all others go on
// from the state that the second left where they part.
TEST(ScanCache, ASystemPromptIsFoundFromTheThirdRequestOn) {
  Scenario point = hybrid();
  point.serving.prefix_caching = true;
  point.load.rate = RequestsPerSecond{0.2};
  point.load.requests = 10;
  point.load.shared_prefix = 1000;
  point.load.measure = MeasureKind::whole;
  point.load.lengths = {.distribution = LengthKind::fixed, .prompt = 1500, .output = 5};
  const Outcome outcome = evaluate(point, toys::transfer_resources());
  ASSERT_EQ(outcome.requests.size(), 10U);
  for (const RequestRow& row : outcome.requests) {
    EXPECT_EQ(row.cached_tokens > 900, row.number >= 2) << row.number;
  }
}

// A model whose layers all attend has no states, whatever is said of them.
TEST(ScanCache, WithoutScanLayersNothingChanges) {
  Scenario point = conversations();
  point.model.scan = {};
  const Metrics plain = figures(point);
  point.model.scan = {.state = 128, .heads = 128, .attention_layers = point.model.layers};
  const Metrics same = figures(point);
  EXPECT_EQ(same.prefix_hit_rate, plain.prefix_hit_rate);
  EXPECT_EQ(same.e2e, plain.e2e);
  EXPECT_EQ(same.kv_use, plain.kv_use);
}

TEST(ScanCache, StatesTakeRoomFromOthers) {
  double before = 1;
  for (const std::int64_t state : {16, 64, 128, 512}) {
    Scenario point = conversations();
    point.model.scan.state = state;
    point.load.think_time = Seconds{10};
    point.serving.kv_blocks = std::int64_t(2e9 / token_bytes(point) / 16);
    const Metrics served = figures(point);
    EXPECT_LT(served.prefix_hit_rate, before + 0.01) << state;
    before = served.prefix_hit_rate;
  }
  EXPECT_LT(before, 0.3);
}

TEST(ScanCache, ATierBringsStatesBack) {
  Scenario point = conversations();
  point.load.think_time = Seconds{10};
  const double everything = figures(point).prefix_hit_rate;
  point.serving.kv_blocks = std::int64_t(8 * state_bytes(point) / token_bytes(point) / 16);
  const double little = figures(point).prefix_hit_rate;
  EXPECT_LT(little, 0.6 * everything);
  for (const TierWrite write : {TierWrite::through, TierWrite::eviction}) {
    Scenario below = point;
    below.serving.tiers.write = write;
    below.serving.tiers.host = Bytes{200e9};
    const Metrics loaded = figures(below);
    EXPECT_GT(loaded.prefix_hit_rate, 0.9 * everything);
    EXPECT_GT(loaded.host_hit_rate, 0.2);
    EXPECT_LE(loaded.host_hit_rate, loaded.prefix_hit_rate + 1e-9);
    // No load is without a state, and none has more than one beside the KV of the longest prompt.
    const double rate = below.device.host_link.bandwidth.value;
    const double state = state_bytes(point) / rate, tokens = 6200 * token_bytes(point) / rate;
    EXPECT_GT(loaded.kv_load.value, state);
    EXPECT_LT(loaded.kv_load.value, 2 * (state + tokens));
  }
}

// As many states fit a tier as its bytes have room for.
TEST(ScanCache, ATierHoldsAsManyStatesAsItHasBytesFor) {
  Scenario point = conversations();
  point.load.shared_prefix = 0;
  point.load.think_time = Seconds{20};
  point.serving.kv_blocks = std::int64_t(8 * state_bytes(point) / token_bytes(point) / 16);
  double before = -1;
  for (const double states : {0.0, 4.0, 16.0, 64.0, 256.0}) {
    point.serving.tiers.host = Bytes{states * (state_bytes(point) + 6200 * token_bytes(point))};
    const double rate = figures(point).prefix_hit_rate;
    EXPECT_GE(rate, before - 0.02) << states;
    before = rate;
  }
  EXPECT_GT(before, 0.4);
}

// One sequence after the other from pool to pool: its KV and one state, however long it is.
TEST(ScanCache, AStateIsCarriedOnce) {
  Scenario point = hybrid();
  point.cluster = toys::shipped("clusters", "dgx-h100").cluster;
  point.prefill.present = true;
  point.prefill.deployment = point;
  point.load.arrivals = ArrivalKind::closed;
  point.load.clients = 1;
  point.load.requests = 20;
  point.load.measure = MeasureKind::whole;
  point.transfer.mode = TransferMode::whole;
  point.transfer.link = {.name = "wire",
                         .topology = Topology::fabric,
                         .bandwidth = BytesPerSecond{10e9},
                         .latency = Seconds{1e-4},
                         .devices = 2};
  for (const std::int64_t attending : {0, 3, 16}) {
    point.model.scan.attention_layers = attending;
    point.prefill.deployment.model = point.model;
    // Of prompts of two lengths, none of which is the mean.
    for (const LengthKind kind : {LengthKind::fixed, LengthKind::uniform}) {
      point.load.lengths = {.distribution = kind, .prompt = 700, .output = 20, .prompt_cv = 0.5};
      const Outcome outcome = evaluate(point, toys::transfer_resources());
      ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
      double tokens = 0;
      for (const RequestRow& row : outcome.requests) tokens += double(row.prompt_tokens);
      tokens /= double(outcome.requests.size());
      const Resources& resources = toys::transfer_resources();
      const Sends sends = sends_over(
          {rates_of(point.transfer.link)}, point.device,
          chosen_calibration(point.calibration, point, resources.calibrations).calibration);
      const double bytes = state_bytes(point) + tokens * token_bytes(point);
      EXPECT_NEAR(outcome.metrics.transfer / sends.line.of(Bytes{bytes}), 1, 1e-6) << attending;
    }
  }
}

// Of a prompt that is read elsewhere a second state comes, from which other answers go on: nobody reads the prompt again.
TEST(ScanCache, OtherAnswersGoOnFromACarriedState) {
  const auto answered = [](std::int64_t samples, std::int64_t prompt) {
    Scenario point = hybrid();
    point.serving.prefix_caching = true;
    point.load.rate = RequestsPerSecond{0.2};
    point.load.requests = 40;
    point.load.samples = samples;
    point.load.measure = MeasureKind::whole;
    point.load.lengths = {.distribution = LengthKind::fixed, .prompt = prompt, .output = 20};
    point.cluster = toys::shipped("clusters", "dgx-h100").cluster;
    point.prefill.present = true;
    point.prefill.deployment = point;
    return figures(point);
  };
  const auto after_first = [](const Metrics& of) { return (of.e2e - of.ttft).value; };
  for (const std::int64_t samples : {2, 4}) {
    const Metrics brief = answered(samples, 1'000), longer = answered(samples, 31'000);
    const double reading = (longer.ttft - brief.ttft).value;
    EXPECT_LT(after_first(longer) - after_first(brief), 0.2 * reading) << samples;
    // The second state has its way, too.
    EXPECT_GT(longer.transfer, answered(1, 31'000).transfer) << samples;
  }
}

}  // namespace
}  // namespace engine

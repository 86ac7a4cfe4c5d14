// Limits at which a mechanism of a fleet is as if it were not there, asked for as users do: specs as text, with the presets of the
// engines that have it.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

#include "engine/evaluate.h"
#include "sweep/language/sweep_spec.h"
#include "sweep/space/space.h"
#include "tests/support/paths.h"

namespace {

using engine::Metrics;

constexpr std::array<std::string_view, 3> kEngines{"vllm-v1", "sglang", "tensorrt-llm"};
constexpr std::string_view kChat = "{from: chat, rate: 8 req/s, requests: 250}";

// A served load; `settings` are those of the engine, and `rest` are other sections.
struct Asked {
  std::string settings;
  std::string load{kChat};
  std::string rest;
};

Metrics served(std::string_view engine, const Asked& asked) {
  const std::string text = fmt::format(
      "base: {{task: serve, device: h100-sxm, model: llama-3.1-8b, serving: {{from: {}{}}}, load: "
      "{}{}}}\n",
      engine, asked.settings, asked.load, asked.rest);
  const sweep::Library library({paths::specs("")});
  const auto spec = sweep::read_sweep_text(text, paths::specs("limits.yaml"), library);
  if (!spec) {
    ADD_FAILURE() << text << engine::to_text(spec.mistakes());
    return {};
  }
  sweep::PointBuilder builder(spec->space);
  sweep::Point point;
  builder.build(0, point);
  const engine::Outcome outcome = engine::evaluate(point.scenario, *spec->resources);
  EXPECT_EQ(outcome.status, engine::Status::ok) << text << outcome.reason;
  return outcome.metrics;
}

void expect_same(const Metrics& one, const Metrics& other, const std::string& which) {
  EXPECT_EQ(one.ttft, other.ttft) << which;
  EXPECT_EQ(one.ttft_p99, other.ttft_p99) << which;
  EXPECT_EQ(one.tpot, other.tpot) << which;
  EXPECT_EQ(one.e2e_p99, other.e2e_p99) << which;
  EXPECT_EQ(one.itl_p99, other.itl_p99) << which;
  EXPECT_EQ(one.measured_from, other.measured_from) << which;
  EXPECT_EQ(one.requests_finished, other.requests_finished) << which;
}

TEST(Limits, WhatHasNothingToDoIsNotThere) {
  const std::string chat(kChat.substr(0, kChat.size() - 1));  // to be gone on with
  const std::array<Asked, 11> idle{{
      {.rest = ", prefill: {}, transfer: {local_prompt: 1000000}"},  // all prompts stay
      {.settings = ", ordering: fair_share"},                        // of one tenant
      {.settings = ", ordering: priority"},                          // of one level
      {.load = chat + ", samples: 1}"},
      {.settings = ", failures: {mean_time_to_failure: 1e15 s}"},
      {.settings = ", scaling: {policy: reactive, min_replicas: 1}"},
      {.settings = ", scaling: {policy: scheduled, schedule: '0:1'}"},
      {.load = chat + ", classes: {high: {share: 0.5, ttft: 2 s}, low: {share: 0.2, ttft: 2 s}}}",
       .rest = ", slo: {ttft_p99: 2 s}"},
      {.settings = ", admission: {shed_late: true}", .rest = ", slo: {ttft_p99: 1e6 s}"},
      {.settings = ", tiers: {host: 100 GB}"},  // nobody asks for anything again
      {.rest = ", speculation: {method: ngram, tokens: 0, acceptance: 0.5}"},
  }};
  for (const std::string_view engine : kEngines) {
    const Metrics plain = served(engine, {});
    for (const Asked& asked : idle) {
      expect_same(served(engine, asked), plain,
                  fmt::format("{}{} {}{}", engine, asked.settings, asked.load, asked.rest));
    }
  }
}

// A fabric that is as wide as its adapters is no bottleneck.
TEST(Limits, NoOversubscriptionIsNone) {
  for (const std::string_view engine : kEngines) {
    expect_same(served(engine, {.rest = ", prefill: {}, transfer: {oversubscription: 1}"}),
                served(engine, {.rest = ", prefill: {}"}), std::string(engine));
  }
}

// Proposals that all hold make a step as good as so many; those that never hold cost what verifying them does, and no token. Requests come
// one by one: faster answers would meet fewer others, and gain more than their steps do.
TEST(Limits, DraftsThatAlwaysHoldMakeAllTheirTokens) {
  const std::string load =
      "{rate: 0.2 req/s, arrivals: deterministic, requests: 200, lengths: {prompt: 500, output: "
      "121}}";
  for (const std::string_view engine : kEngines) {
    const Metrics plain = served(engine, {.load = load});
    for (const int tokens : {1, 3, 7}) {
      const auto with = [&](int acceptance) {
        return served(engine, {.load = load,
                               .rest = fmt::format(
                                   ", speculation: {{method: ngram, tokens: {}, acceptance: {}}}",
                                   tokens, acceptance)});
      };
      const Metrics all = with(1), none = with(0);
      EXPECT_DOUBLE_EQ(all.accepted_tokens_per_step, tokens + 1) << engine;
      EXPECT_LE(plain.tpot / all.tpot, (tokens + 1) * (1 + 1e-9)) << engine;
      EXPECT_GT(plain.tpot / all.tpot, 0.9 * (tokens + 1)) << engine;
      EXPECT_DOUBLE_EQ(none.accepted_tokens_per_step, 1) << engine;
      EXPECT_GE(none.tpot, plain.tpot) << engine;
    }
  }
}

// Host memory without an end, from which bytes come at once, finds what a cache without an end would.
TEST(Limits, AnEndlessTierForFreeIsAnEndlessCache) {
  const std::string sessions =
      "{rate: 0.5 req/s, requests: 300, turns: 4, think_time: 20 s, lengths: {prompt: 400, output: "
      "64}}";
  for (const std::string_view engine : kEngines) {
    const std::string small = engine == "sglang" ? ", kv_blocks: 32000" : ", kv_blocks: 1500";
    const Metrics endless = served(engine, {.load = sessions});
    const Metrics alone = served(engine, {.settings = small, .load = sessions});
    for (const char* write : {"through", "eviction"}) {
      const Metrics tier = served(
          engine,
          {.settings = small + fmt::format(", tiers: {{host: 1e15 B, host_bandwidth: 1e18 B/s, "
                                           "pieces: gathered, write: {}}}",
                                           write),
           .load = sessions});
      EXPECT_LT(alone.prefix_hit_rate, 0.97 * endless.prefix_hit_rate) << engine;
      EXPECT_NEAR(tier.prefix_hit_rate, endless.prefix_hit_rate, 2e-3) << engine;
      EXPECT_NEAR(tier.ttft / endless.ttft, 1, 0.02) << engine;
      EXPECT_NEAR(tier.tpot / endless.tpot, 1, 0.02) << engine;
    }
  }
}

}  // namespace

// Laws of requests whose prompts are looked up first: a search, a re-ranker, an answer.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "engine/evaluate.h"
#include "engine/tasks/request/vector_search.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

// Ten million vectors of 1,024 numbers of 16 bits are 20.5 GB.
Scenario question() {
  Scenario scenario = toys::scenario();
  scenario.task = Task::request;
  scenario.device = toys::shipped("devices", "h100-sxm").device;
  scenario.model = toys::shipped("models", "llama-3.2-1b").model;
  scenario.host = toys::no_host();
  scenario.request = {.batch = 1, .prompt = 200, .output = 8};
  scenario.retrieval = {.vectors = 10'000'000, .host_bandwidth = BytesPerSecond{400e9}};
  return scenario;
}

Scenario with_ranker(Scenario scenario) {
  scenario.rerank.present = true;
  fill_roles(scenario);
  scenario.rerank.deployment.model = toys::shipped("models", "qwen3-0.6b").model;
  return scenario;
}

Metrics made(const Scenario& scenario) {
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome.metrics;
}

std::string reason(const Scenario& scenario) {
  const Outcome outcome = evaluate(scenario);
  EXPECT_NE(outcome.status, Status::ok);
  return outcome.reason;
}

TEST(RetrievalLaws, AnExactSearchOfAHostReadsAllVectors) {
  Scenario scenario = question();
  EXPECT_NEAR(made(scenario).retrieve.value, 20.48e9 / 400e9, 1e-9);
  scenario.retrieval.latency = Seconds{2e-3};
  EXPECT_NEAR(made(scenario).retrieve.value, 20.48e9 / 400e9 + 2e-3, 1e-9);
  scenario.retrieval.format = Dtype::int8;
  EXPECT_NEAR(made(scenario).retrieve.value, 10.24e9 / 400e9 + 2e-3, 1e-9);
  // 2 x 10 million x 1,024 operations.
  scenario.retrieval.host_peak = FlopsPerSecond{20.48e9};
  EXPECT_NEAR(made(scenario).retrieve.value, 1 + 2e-3, 1e-9);
}

// 64 of 4,096 lists hold a sixty-fourth of the vectors; and all centres are met.
TEST(RetrievalLaws, ListsAreReadAsFarAsTheyAreProbed) {
  Scenario scenario = question();
  scenario.retrieval.index = VectorIndex::ivf;
  scenario.retrieval.lists = 4096;
  scenario.retrieval.probes = 64;
  EXPECT_NEAR(made(scenario).retrieve.value, (4096 + 1e7 / 64) * 2048 / 400e9, 1e-9);
  scenario.retrieval.probes = 4096;
  EXPECT_NEAR(made(scenario).retrieve.value, (4096 + 1e7) * 2048 / 400e9, 1e-9);
}

TEST(RetrievalLaws, QuestionsShareWhatTheyRead) {
  VectorSearch search{.questions = 1, .vectors = 1 << 20, .dimensions = 64};
  const Bytes one = search.bytes();
  search.questions = 8;
  EXPECT_EQ(search.bytes(), one) << "all vectors are read once";
  EXPECT_EQ(search.flops(), Flops{8.0 * 2 * (1 << 20) * 64});
  search.lists = 1024;
  search.probes = 4;
  double before = 0;
  for (const std::int64_t questions : {1, 2, 8, 1000, 100000}) {
    search.questions = questions;
    const double met = search.lists_met();
    EXPECT_GT(met, before);
    EXPECT_LE(met, 1024);
    EXPECT_LE(met, 4 * double(questions) * (1 + 1e-9));
    before = met;
  }
}

TEST(RetrievalLaws, StagesAddUp) {
  Scenario plain = question();
  plain.request.prompt += 5 * 300;
  plain.retrieval.vectors = 0;
  const Metrics without = made(plain), with = made(question());
  EXPECT_TRUE(std::isnan(without.retrieve.value));
  EXPECT_TRUE(std::isnan(with.rerank.value));
  EXPECT_NEAR((with.ttft - without.ttft - with.retrieve).value, 0, 1e-9);
  EXPECT_NEAR((with.e2e - without.e2e - with.retrieve).value, 0, 1e-9);
  EXPECT_EQ(with.tpot, without.tpot) << "passages are part of the prompt";
  const Metrics ranked = made(with_ranker(question()));
  EXPECT_GT(ranked.rerank.value, 0);
  EXPECT_NEAR((ranked.ttft - with.ttft - ranked.rerank).value, 0, 1e-9);
  EXPECT_NEAR((ranked.e2e - with.e2e - ranked.rerank).value, 0, 1e-9);
  EXPECT_EQ(ranked.devices, with.devices + 1) << "re-rankers have devices of their own";
}

TEST(RetrievalLaws, TheBreakdownAddsUpToTheWholeAndSaysWhoDidWhat) {
  Scenario scenario = with_ranker(question());
  scenario.retrieval.latency = Seconds{1e-3};
  const Outcome outcome = evaluate(scenario);
  Seconds all, ranking, searching;
  for (const KernelRow& row : outcome.kernels) {
    all += row.work.exposed();
    if (row.role == DeploymentRole::rerank) ranking += row.work.exposed();
    if (row.op == OpName::vector_search) searching += row.work.exposed();
  }
  EXPECT_NEAR(all / outcome.metrics.e2e, 1, 1e-9);
  EXPECT_NEAR(ranking / outcome.metrics.rerank, 1, 1e-9);
  EXPECT_NEAR(searching / outcome.metrics.retrieve, 1, 1e-9);
}

// The devices' own memory is eight times as fast as the host's; the store takes room beside the model.
TEST(RetrievalLaws, DevicesSearchWhatTheyHold) {
  Scenario scenario = question();
  const Metrics host = made(scenario);
  scenario.retrieval.place = StorePlace::device;
  const Metrics device = made(scenario);
  const double least = 20.48e9 / scenario.device.memory_bandwidth.value;
  EXPECT_GE(device.retrieve.value, least);
  EXPECT_LE(device.retrieve.value, 1.6 * least);
  EXPECT_NEAR((device.weights - host.weights).value, 20.48e9, 1);
  scenario.parallel.tp = 2;
  EXPECT_NEAR(made(scenario).retrieve / device.retrieve, 0.5, 0.05);
  scenario.retrieval.vectors = 100'000'000;
  EXPECT_NE(reason(scenario).find("vectors"), std::string::npos);
}

TEST(RetrievalLaws, MorePassagesTakeLonger) {
  Scenario scenario = with_ranker(question());
  double before = 0;
  for (const std::int64_t candidates : {5, 20, 50, 200}) {
    scenario.retrieval.candidates = candidates;
    const double time = made(scenario).rerank.value;
    EXPECT_GT(time, before);
    before = time;
  }
  // Many steps of as many pairs as a step has room for.
  scenario.rerank.deployment.serving.max_num_batched_tokens = 332 * 10;
  scenario.retrieval.candidates = 10;
  const double ten = made(scenario).rerank.value;
  scenario.retrieval.candidates = 100;
  EXPECT_NEAR(made(scenario).rerank.value / ten, 10, 1e-6);
}

TEST(RetrievalLaws, FasterMemoryIsNoSlower) {
  for (const StorePlace place : {StorePlace::host, StorePlace::device}) {
    for (const VectorIndex index : {VectorIndex::exact, VectorIndex::ivf}) {
      Scenario scenario = question();
      scenario.retrieval.place = place;
      scenario.retrieval.index = index;
      const Seconds before = made(scenario).retrieve;
      scenario.device.memory_bandwidth *= 2;
      EXPECT_LE(made(scenario).retrieve, before);
      scenario.retrieval.host_bandwidth *= 2;
      EXPECT_LE(made(scenario).retrieve, before);
    }
  }
}

// A search finds no more passages than it meets, by a list or in all.
TEST(RetrievalLaws, NoMoreIsFoundThanIsThere) {
  Scenario scenario = question();
  scenario.retrieval.vectors = 5;
  made(scenario);
  scenario.retrieval.vectors = 4;
  EXPECT_NE(reason(scenario).find("retrieval.passages (5)"), std::string::npos);
  Scenario listed = with_ranker(question());
  listed.retrieval.index = VectorIndex::ivf;
  listed.retrieval.lists = 1'000'000;
  listed.retrieval.probes = 5;
  made(listed);
  listed.retrieval.probes = 4;
  EXPECT_NE(reason(listed).find("retrieval.candidates (50) are more than the 40 vectors"),
            std::string::npos);
}

TEST(RetrievalLaws, WhatCannotBeIsRefused) {
  Scenario nowhere = question();
  nowhere.retrieval.host_bandwidth = BytesPerSecond{0};
  EXPECT_NE(reason(nowhere).find("retrieval.host_bandwidth"), std::string::npos);
  Scenario probes = question();
  probes.retrieval.index = VectorIndex::ivf;
  probes.retrieval.lists = 8;
  EXPECT_NE(reason(probes).find("retrieval.probes (16)"), std::string::npos);
  Scenario few = with_ranker(question());
  few.retrieval.candidates = 3;
  EXPECT_NE(reason(few).find("retrieval.candidates (3)"), std::string::npos);
  Scenario uneven = with_ranker(question());
  uneven.parallel.dp = 2;
  EXPECT_NE(reason(uneven).find("rerank.parallel.dp"), std::string::npos);
  Scenario narrow = with_ranker(question());
  narrow.rerank.deployment.device.memory_capacity = Bytes{1e8};
  EXPECT_TRUE(reason(narrow).starts_with("rerank: "));
}

}  // namespace
}  // namespace engine

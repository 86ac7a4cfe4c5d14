// Low-rank adapters on one base model: what they must cost, in a step and in a served load.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "engine/evaluate.h"
#include "engine/model/adapters.h"
#include "engine/serving/replica/adapter_cache.h"
#include "engine/workload/shares.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

Scenario step_with(std::int64_t adapters, StepPhase phase = StepPhase::decode) {
  Scenario scenario = toys::scenario();
  scenario.host = toys::no_host();
  scenario.step = {.phase = phase, .batch = 64, .context = 500, .prompt = 64, .adapters = adapters};
  return scenario;
}

Scenario served(std::int64_t adapters) {
  Scenario scenario = toys::scenario();
  scenario.task = Task::serve;
  scenario.load.rate = RequestsPerSecond{30};
  scenario.load.requests = 500;
  scenario.load.lengths = {.prompt = 200, .output = 40};
  scenario.load.adapters = adapters;
  scenario.serving.lora.rank = 16;
  return scenario;
}

Metrics figures(const Scenario& scenario) {
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome.metrics;
}

TEST(Adapters, WeightsOfOneByHand) {
  // Four products of attention and three of the MLP, each with its input and its output, in ten layers.
  const Scenario scenario = step_with(1);
  ModelShard shard = shard_of(scenario.model, scenario.parallel, scenario.quant);
  shard.lora_rank = 8;
  const double attention = (4096 + 4096) + 2 * (4096 + 1024) + (4096 + 4096);
  // The three inputs of queries, keys and values share one product of the model: they count a third of its outputs each.
  const double joined = 3 * (4096 + (4096 + 2 * 1024) / 3) + (4096 + 4096);
  EXPECT_EQ(attention, joined);
  const double mlp = 2 * (4096 + 8192) + (8192 + 4096);
  EXPECT_EQ(adapter_bytes(shard).value, 2 * 8 * 10 * (attention + mlp));
  shard.lora_targets = LoraTargets::mlp;
  EXPECT_EQ(adapter_bytes(shard).value, 2 * 8 * 10 * mlp);
}

TEST(Adapters, NoneIsTheModelAsItIs) {
  Scenario scenario = step_with(0);
  const Metrics plain = figures(scenario);
  scenario.serving.lora.rank = 64;
  EXPECT_EQ(figures(scenario).step_time, plain.step_time);
  EXPECT_EQ(figures(scenario).weights, plain.weights);
}

TEST(Adapters, OneAddsItsOwnOperationsAndItsOwnWeights) {
  const Outcome plain = evaluate(step_with(0)), one = evaluate(step_with(1));
  double flops = 0, time = 0;
  for (const KernelRow& row : one.kernels) {
    if (row.op != OpName::adapter) continue;
    flops += row.work.flops.value;
    time += row.work.time.value;
  }
  const Scenario scenario = step_with(1);
  ModelShard shard = shard_of(scenario.model, scenario.parallel, scenario.quant);
  EXPECT_NEAR(flops, 64 * adapter_bytes(shard).value, 1e-6 * flops);  // two a weight of two bytes
  EXPECT_NEAR(one.metrics.step_time.value, plain.metrics.step_time.value + time, 1e-12);
  EXPECT_EQ(one.metrics.weights - plain.metrics.weights, adapter_bytes(shard));
}

TEST(Adapters, MoreOfThemOrWiderOnesAreNeverFaster) {
  for (const StepPhase phase : {StepPhase::decode, StepPhase::prefill}) {
    double before = 0;
    for (const std::int64_t count : {0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 64}) {
      const double time = figures(step_with(count, phase)).step_time.value;
      EXPECT_GE(time, before * (1 - 1e-12)) << count;
      before = time;
    }
    before = 0;
    for (const std::int64_t rank : {1, 4, 8, 16, 32, 64, 128, 256}) {
      Scenario scenario = step_with(16, phase);
      scenario.serving.lora.rank = rank;
      const double time = figures(scenario).step_time.value;
      EXPECT_GE(time, before * (1 - 1e-12)) << rank;
      before = time;
    }
  }
}

TEST(Adapters, AStepHasNoMoreOfThemThanSequencesOrSlots) {
  EXPECT_EQ(evaluate(step_with(65)).reason,
            "step.adapters (65) is more than step.batch (64): a sequence has one at most");
  Scenario scenario = step_with(9);
  scenario.serving.lora.slots = 8;
  EXPECT_EQ(evaluate(scenario).reason, "step.adapters (9) is more than serving.lora.slots (8)");
}

TEST(AdapterCache, ThoseInUseStayAndTheLongestUnusedGoes) {
  AdapterCache cache;
  cache.reset({.slots = 2, .load_seconds = 1, .latency = 0.5});
  EXPECT_EQ(cache.need(7, 0), 1.5);
  EXPECT_EQ(cache.need(8, 0), 3);    // one load follows another
  EXPECT_EQ(cache.need(7, 1), 1.5);  // on its way
  EXPECT_EQ(cache.need(9, 4), AdapterCache::kNoRoom);
  cache.release(8);
  EXPECT_EQ(cache.need(9, 4), 5.5);
  EXPECT_FALSE(cache.holds(8));
  cache.release(7);
  EXPECT_EQ(cache.need(8, 6), AdapterCache::kNoRoom);  // another request still needs 7
  cache.release(7);
  EXPECT_EQ(cache.need(7, 6), 6);  // still there
}

TEST(ServedAdapters, AllThatFitAreNeverWaitedFor) {
  const Metrics figure = figures(served(50));
  EXPECT_EQ(figure.adapter_hit_rate, 1);
  EXPECT_TRUE(std::isnan(figure.adapter_load.value));
  EXPECT_GT(figure.adapters_per_step, 1);
  EXPECT_LE(figure.adapters_per_step, figure.batch_mean + 1e-9);
  EXPECT_GT(figure.tpot, figures(served(0)).tpot);
  EXPECT_TRUE(std::isnan(figures(served(0)).adapters_per_step));
}

TEST(ServedAdapters, OneAdapterIsInEveryStep) {
  EXPECT_NEAR(figures(served(1)).adapters_per_step, 1, 1e-12);
}

// Whoever waits for an adapter is in the system: over the whole run rows of the timeline hold as many as there are.
TEST(ServedAdapters, WhoWaitsForOneIsInTheTimeline) {
  Scenario scenario = served(50);
  scenario.serving.lora.slots = 4;
  scenario.load.measure = MeasureKind::whole;
  scenario.output.timeline = Seconds{0.05};
  const Outcome outcome = evaluate(scenario);
  double inside = 0;
  for (const TimelineRow& row : outcome.timeline) inside += double(row.waiting + row.running);
  inside /= double(outcome.timeline.size());
  EXPECT_GT(outcome.metrics.adapter_load, outcome.metrics.tpot);
  EXPECT_NEAR(inside / outcome.metrics.concurrency, 1, 0.05);
}

TEST(ServedAdapters, LoadingForFreeIsAsIfAllWereThere) {
  Scenario scenario = served(50);
  const Metrics all = figures(scenario);
  scenario.serving.lora = {
      .slots = 49, .load_bandwidth = BytesPerSecond{1e24}, .load_latency = Seconds{0}};
  const Metrics some = figures(scenario);
  EXPECT_NEAR(some.tpot.value, all.tpot.value, 1e-9);
  EXPECT_NEAR(some.ttft.value, all.ttft.value, 1e-9);
  EXPECT_LT(some.kv_capacity_tokens - all.kv_capacity_tokens, 1e6);
}

TEST(ServedAdapters, MoreSlotsFindMoreAndWaitLess) {
  double hits = -1, ttft = 1e9;
  for (const std::int64_t slots : {25, 50, 100, 199}) {
    Scenario scenario = served(200);
    scenario.load.adapter_skew = 1;
    scenario.serving.lora.slots = slots;
    const Metrics figure = figures(scenario);
    EXPECT_GE(figure.adapter_hit_rate, hits) << slots;
    EXPECT_LE(figure.ttft.value, ttft * 1.02) << slots;
    EXPECT_EQ(figure.requests_finished, 500) << slots;
    hits = figure.adapter_hit_rate;
    ttft = figure.ttft.value;
  }
}

TEST(ServedAdapters, FewerSlotsThanSequencesWaitForRoomAndAllAreAnswered) {
  for (const std::int64_t slots : {1, 2, 5}) {
    Scenario scenario = served(40);
    scenario.serving.lora.slots = slots;
    const Metrics figure = figures(scenario);
    EXPECT_EQ(figure.requests_finished, 500) << slots;
    EXPECT_LE(figure.adapters_per_step, double(slots) + 1e-9);
  }
}

TEST(ServedAdapters, APlaceForEachAdapterLoadsLess) {
  Scenario scenario = served(64);
  scenario.serving.replicas = 4;
  scenario.serving.lora.slots = 24;
  scenario.serving.router = router_named("least_outstanding");
  const Metrics anywhere = figures(scenario);
  scenario.serving.router = router_named("adapter_affine");
  const Metrics at_home = figures(scenario);
  EXPECT_GT(at_home.adapter_hit_rate, anywhere.adapter_hit_rate + 0.1);
}

TEST(ServedAdapters, EveryStepOnItsOwnIsTheSame) {
  Scenario scenario = served(30);
  scenario.serving.lora.slots = 12;
  const Metrics fast = figures(scenario);
  scenario.serving.stepping = true;
  const Metrics slow = figures(scenario);
  EXPECT_NEAR(fast.e2e.value, slow.e2e.value, 1e-9);
  EXPECT_NEAR(fast.adapters_per_step, slow.adapters_per_step, 1e-9);
}

// Prompts that are read elsewhere need their adapters there, and again where answers are written.
Scenario with_readers(std::int64_t slots) {
  Scenario scenario = served(20);
  scenario.load.adapter_skew = 1;
  scenario.serving.lora.slots = slots;
  scenario.prefill.present = true;
  fill_roles(scenario);
  return scenario;
}

TEST(ServedAdapters, AreLoadedWhereverTheirRequestsGo) {
  const Metrics all = figures(with_readers(0));
  EXPECT_EQ(all.adapter_hit_rate, 1);
  Scenario readers_have_few = with_readers(0);
  readers_have_few.prefill.deployment.serving.lora.slots = 4;
  Scenario writers_have_few = with_readers(4);
  writers_have_few.prefill.deployment.serving.lora.slots = 0;
  const Metrics here = figures(readers_have_few), there = figures(writers_have_few);
  const Metrics both = figures(with_readers(4));
  for (const Metrics& few : {here, there, both}) {
    EXPECT_LT(few.adapter_hit_rate, 1);
    EXPECT_EQ(few.requests_finished, all.requests_finished);
    EXPECT_GT(few.e2e, all.e2e);
  }
  EXPECT_LT(both.adapter_hit_rate, std::max(here.adapter_hit_rate, there.adapter_hit_rate));
  Scenario stepped = with_readers(4);
  stepped.serving.stepping = true;
  EXPECT_NEAR(figures(stepped).e2e.value, both.e2e.value, 1e-9 * both.e2e.value);
  // Bytes of a reader's adapters lie in its memory, and both pools have the same adapters.
  Scenario unlike = with_readers(4);
  unlike.prefill.deployment.serving.lora.rank = 8;
  EXPECT_NE(evaluate(unlike).reason.find("the same adapters"), std::string::npos);
  Scenario pushed = with_readers(4);
  pushed.transfer.initiative = TransferInitiative::push;
  EXPECT_EQ(figures(pushed).requests_finished, all.requests_finished);
  EXPECT_LT(figures(pushed).adapter_hit_rate, 1);
}

// A draft has none: adapters cost what they cost the main model, which verifies several tokens of each sequence.
TEST(ServedAdapters, OfTheMainModelLeaveTheDraftAsItIs) {
  Scenario scenario = served(6);
  scenario.speculation = {
      .method = SpeculationMethod::draft_model, .tokens = 3, .acceptance = "0.7"};
  scenario.draft.present = true;
  fill_roles(scenario);
  scenario.draft.deployment.model.layers = 2;
  const Outcome adapted = evaluate(scenario);
  ASSERT_EQ(adapted.status, Status::ok) << adapted.reason;
  for (const KernelRow& row : adapted.kernels) {
    EXPECT_FALSE(row.op == OpName::adapter && row.role == DeploymentRole::draft);
  }
  Scenario plain = scenario;
  plain.load.adapters = 0;
  EXPECT_GT(adapted.metrics.tpot, figures(plain).tpot);
  scenario.serving.stepping = true;
  EXPECT_NEAR(figures(scenario).e2e.value, adapted.metrics.e2e.value, 1e-9);
}

// A model that proposes for itself does so with the adapters of its sequences: every step of a draft has them once more.
TEST(ServedAdapters, AreThoseOfAModelThatProposesForItself) {
  const auto self = [](Scenario scenario, const char* tree = "") {
    scenario.speculation = {.method = SpeculationMethod::self,
                            .tokens = 3,
                            .acceptance = "0.7",
                            .tree = tree,
                            .draft_window = 32,
                            .draft_overhead = Seconds{0}};
    return scenario;
  };
  const auto adapters = [](const Outcome& outcome, DeploymentRole role) {
    double seconds = 0;
    for (const KernelRow& row : outcome.kernels) {
      if (row.op == OpName::adapter && row.role == role) seconds += row.work.time.value;
    }
    return seconds;
  };
  const Outcome alone = evaluate(step_with(8)), proposed = evaluate(self(step_with(8)));
  ASSERT_EQ(proposed.status, Status::ok) << proposed.reason;
  const double once = adapters(alone, DeploymentRole::main);
  EXPECT_NEAR(adapters(proposed, DeploymentRole::draft), 3 * once, 1e-9 * once);
  for (const char* tree : {"", "2 2"}) {
    Scenario scenario = self(served(6), tree);
    const Outcome fast = evaluate(scenario);
    ASSERT_EQ(fast.status, Status::ok) << fast.reason;
    EXPECT_GT(adapters(fast, DeploymentRole::draft), 0);
    double rows = 0;
    for (const KernelRow& row : fast.kernels) rows += row.work.exposed().value;
    const double time = fast.metrics.utilization * fast.metrics.makespan.value;
    EXPECT_NEAR(rows, time, 1e-6 * time);
    scenario.serving.stepping = true;
    const Outcome slow = evaluate(scenario);
    EXPECT_NEAR(slow.metrics.e2e.value, fast.metrics.e2e.value, 1e-9);
    EXPECT_NEAR(adapters(slow, DeploymentRole::draft), adapters(fast, DeploymentRole::draft), 1e-9);
    scenario.load.adapters = 0;
    EXPECT_LT(figures(scenario).tpot, fast.metrics.tpot);
  }
}

// Adapters are lost with the replica that had them, and its requests ask for theirs wherever they go on.
TEST(ServedAdapters, AreLoadedAgainAfterAFailure) {
  Scenario scenario = served(20);
  scenario.load.adapter_skew = 1;
  scenario.load.measure = MeasureKind::whole;
  scenario.serving.lora.slots = 18;
  scenario.serving.replicas = 2;
  const Metrics steady = figures(scenario);
  scenario.serving.failures = {
      .mean_time_to_failure = Seconds{1}, .mean_time_to_repair = Seconds{0.1}, .attempts = 1000};
  const Metrics failing = figures(scenario);
  EXPECT_EQ(failing.requests_finished, steady.requests_finished);
  EXPECT_LT(failing.adapter_hit_rate, steady.adapter_hit_rate);
  scenario.serving.stepping = true;
  EXPECT_NEAR(figures(scenario).e2e.value, failing.e2e.value, 1e-9 * failing.e2e.value);
}

// Everybody comes at once and there is one place: whoever wants the adapter that is loaded goes on with it, whoever came before. So
// there are as many batches as adapters.
TEST(ServedAdapters, WhoseAdapterIsLoadedDoesNotWaitForOthers) {
  for (const std::int64_t adapters : {1, 2, 5}) {
    Scenario scenario = served(adapters);
    scenario.load.arrivals = ArrivalKind::closed;
    scenario.load.clients = scenario.load.requests = 40;
    scenario.load.measure = MeasureKind::whole;
    scenario.output.requests = true;
    scenario.serving.max_num_batched_tokens = 1 << 16;
    scenario.serving.lora.slots = 1;
    for (const bool stepping : {false, true}) {
      scenario.serving.stepping = stepping;
      const Outcome outcome = evaluate(scenario);
      ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
      std::set<std::int64_t> ends;
      for (const RequestRow& row : outcome.requests)
        ends.insert(std::llround(row.finish.value * 1e9));
      EXPECT_EQ(std::int64_t(ends.size()), adapters);
    }
  }
}

TEST(ServedAdapters, FewerSlotsNeverServeMore) {
  double before = 0;
  for (const std::int64_t slots : {1, 2, 3, 5, 7, 9, 10}) {
    Scenario scenario = served(10);
    scenario.load.arrivals = ArrivalKind::closed;
    scenario.load.clients = 64;
    scenario.load.measure = MeasureKind::whole;
    scenario.serving.lora.slots = slots;
    const double rate = figures(scenario).throughput.value;
    EXPECT_GT(rate, before * 0.98) << slots;
    before = rate;
  }
}

TEST(Shares, HowManyDifferentOnesByHand) {
  EXPECT_NEAR(expected_different(summed_shares(2, 0), 1), 1, 1e-12);
  EXPECT_NEAR(expected_different(summed_shares(2, 0), 2), 1.5, 1e-12);
  // 2/3 and 1/3: 1 - (1/3)^2 and 1 - (2/3)^2.
  EXPECT_NEAR(expected_different(summed_shares(2, 1), 2), 13.0 / 9, 1e-12);
  EXPECT_NEAR(expected_different(summed_shares(5, 1), 1e6), 5, 1e-9);
}

// A share of the throughput is one of a throughput with adapters: more of them leave less.
TEST(ServedAdapters, AreInTheThroughputThatALoadIsAShareOf) {
  const auto offered = [](std::int64_t adapters, double skew) {
    Scenario scenario = served(adapters);
    scenario.load.throughput_fraction = 0.6;
    scenario.load.adapter_skew = skew;
    const Metrics figure = figures(scenario);
    return figure.offered.value;
  };
  double before = offered(0, 0);
  for (const std::int64_t adapters : {1, 8, 64}) {
    const double rate = offered(adapters, 0);
    EXPECT_LT(rate, before * 0.99) << adapters;
    before = rate;
  }
  EXPECT_GT(offered(64, 3), before);  // most ask for the first few
}

}  // namespace
}  // namespace engine

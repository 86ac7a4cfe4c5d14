// How KV caches get from one deployment to another: pushed into blocks that were set aside or fetched, over few adapters or
// many, alone on them or beside collectives.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/base/moment.h"
#include "tests/support/shipped.h"
#include "tests/support/speculation_toys.h"

namespace engine {
namespace {

using toys::expect_same_figures;
using toys::sound;

// One reader and one writer, each on `devices` devices in nodes of two.
Scenario two_pools(std::int64_t devices) {
  Scenario scenario = toys::scenario();
  scenario.task = Task::serve;
  scenario.parallel.tp = devices;
  scenario.cluster.devices_per_node = 2;
  scenario.load.rate = RequestsPerSecond{20};
  scenario.load.requests = 300;
  scenario.load.lengths = {.distribution = LengthKind::lognormal, .prompt = 2000, .output = 40};
  scenario.load.measure = MeasureKind::whole;
  scenario.output.requests = true;
  scenario.prefill.present = true;
  fill_roles(scenario);
  return scenario;
}

Scenario pushed(Scenario scenario) {
  scenario.transfer.initiative = TransferInitiative::push;
  return scenario;
}

// With nobody else about there is room for whoever comes, before reading as after it.
TEST(Push, OneRequestAtATimeIsAsWhenFetched) {
  Scenario fetched = two_pools(2);
  fetched.load.arrivals = ArrivalKind::closed;
  fetched.load.clients = 1;
  fetched.load.requests = 20;
  Outcome a = sound(fetched), b = sound(pushed(fetched));
  EXPECT_EQ(b.metrics.reserve_wait.value, 0);
  b.metrics.reserve_wait = a.metrics.reserve_wait;
  expect_same_figures(a, b, 1e-12);
}

// What nobody states is up to the engine that writes the answers.
TEST(Push, TheEngineTakesTheInitiative) {
  for (const bool pushes : {false, true}) {
    Scenario left = two_pools(2);
    left.serving.pushes_kv = pushes;
    left.prefill.deployment.serving.pushes_kv = !pushes;  // it is not asked
    Scenario stated = left;
    stated.transfer.initiative = pushes ? TransferInitiative::push : TransferInitiative::pull;
    expect_same_figures(sound(left), sound(stated), 0);
    EXPECT_EQ(std::isnan(sound(left).metrics.reserve_wait.value), !pushes);
  }
  EXPECT_TRUE(toys::shipped("serving", "sglang").serving.pushes_kv);
  EXPECT_FALSE(toys::shipped("serving", "vllm-v1").serving.pushes_kv);
  EXPECT_FALSE(toys::shipped("serving", "tensorrt-llm").serving.pushes_kv);
}

// Who reads waits for the adapter and the images of a prompt, once blocks have been set aside for it; who writes waits for the
// adapter before, which takes as long as waiting for it after the prompt was read.
TEST(Push, WaitsForAdaptersAndImagesAsWhenFetched) {
  Scenario fetched = two_pools(2);
  fetched.load.arrivals = ArrivalKind::closed;
  fetched.load.clients = 1;
  fetched.load.requests = 20;
  Scenario adapted = fetched;
  adapted.load.adapters = 6;
  adapted.serving.lora.slots = adapted.prefill.deployment.serving.lora.slots = 2;
  Scenario pictured = fetched;
  pictured.load.images = 1;
  pictured.load.image_tokens = 60;
  pictured.encode.present = true;
  pictured.encode.deployment = pictured;
  pictured.encode.deployment.model.layers = 1;
  Outcome a = sound(pictured), b = sound(pushed(pictured));
  EXPECT_GT(a.metrics.ttft, sound(fetched).metrics.ttft);
  b.metrics.reserve_wait = a.metrics.reserve_wait;
  expect_same_figures(a, b, 1e-12);
  const Metrics late = sound(adapted).metrics, early = sound(pushed(adapted)).metrics;
  EXPECT_GT(late.ttft, sound(fetched).metrics.ttft);
  // KV leaves at whole moments.
  EXPECT_NEAR(early.ttft.value, late.ttft.value, kSameMoment);
  EXPECT_NEAR(early.e2e.value, late.e2e.value, kSameMoment);
  EXPECT_NEAR((early.queue + early.transfer).value, (late.queue + late.transfer).value,
              kSameMoment);
}

// Whoever fails, readers or those that set blocks aside, everybody is answered, and no block is lost.
TEST(Push, LosesNobodyToFailures) {
  for (const double readers : {0.0, 0.5}) {
    for (const double writers : {0.0, 0.5}) {
      Scenario scenario = pushed(two_pools(2));
      scenario.serving.replicas = scenario.prefill.deployment.serving.replicas = 2;
      scenario.serving.kv_blocks = 600;
      const auto fail = [](FailureSettings& failures, double seconds) {
        failures = {.mean_time_to_failure = Seconds{seconds},
                    .mean_time_to_repair = Seconds{0.1},
                    .attempts = 1000};
      };
      const double answered = sound(scenario).metrics.requests_finished;
      fail(scenario.serving.failures, writers);
      fail(scenario.prefill.deployment.serving.failures, readers);
      const Metrics figures = sound(scenario).metrics;
      EXPECT_EQ(figures.requests_finished, answered) << readers << " " << writers;
      if (readers + writers > 0) {
        EXPECT_GT(figures.requests_retried, 0);
      }
    }
  }
}

// A KV cache that was read never waits for room; where there is little of it, requests wait before they are read.
TEST(Push, WaitsForRoomBeforeReadingAndNotAfterIt) {
  Scenario fetched = two_pools(2);
  fetched.serving.kv_blocks = 400;  // of 16: three or four requests
  fetched.prefill.deployment.serving.kv_blocks = 4000;
  fetched.load.lengths = {.prompt = 1500, .output = 100};
  const Outcome a = sound(fetched), b = sound(pushed(fetched));
  EXPECT_GT(b.metrics.reserve_wait.value, 0.05);
  // On its way as long as it takes alone, or shared with the few that there is room for.
  const auto longest_way = [](const Outcome& outcome) {
    double longest = 0;
    for (const RequestRow& row : outcome.requests) {
      longest = std::max(longest, (row.received - row.read).value);
    }
    return longest;
  };
  EXPECT_LT(longest_way(b), 0.25 * longest_way(a));
  // Readers hold nothing that waits: they need fewer blocks.
  EXPECT_LE(b.metrics.makespan.value, 1.2 * a.metrics.makespan.value);
}

// Most sequences that have blocks at the writer at any one time: from when their KV leaves the reader until their answer ends.
int most_inside(const Outcome& outcome) {
  int most = 0;
  for (const RequestRow& one : outcome.requests) {
    int inside = 0;
    for (const RequestRow& other : outcome.requests) {
      inside += other.received <= one.received && one.received < other.finish;
    }
    most = std::max(most, inside);
  }
  return most;
}

// 400 blocks of 16 have room for four prompts of 1,500 tokens (94 blocks), and for three of them with answers of 400 (119).
TEST(Push, TokensStayFreeForWhatThoseInsideWillWrite) {
  Scenario scenario = pushed(two_pools(2));
  scenario.serving.policy = policy_named("sglang");
  scenario.serving.kv_blocks = 400;
  scenario.load.lengths = {.prompt = 1500, .output = 400};
  const Outcome crowded = sound(scenario);
  EXPECT_GT(crowded.metrics.preemptions, 0);
  scenario.serving.reserved_decode_tokens = 400;
  const Outcome kept = sound(scenario);
  EXPECT_EQ(kept.metrics.preemptions, 0);
  EXPECT_EQ(most_inside(kept), 3);
  EXPECT_EQ(kept.metrics.requests_finished, crowded.metrics.requests_finished);
  // Whoever sets blocks aside when KV is fetched keeps as many free.
  scenario.transfer.initiative = TransferInitiative::pull;
  EXPECT_EQ(sound(scenario).metrics.preemptions, 0);
  // What is more than all blocks keeps nobody out for good: they come one by one.
  scenario.serving.reserved_decode_tokens = 100'000;
  const Outcome alone = sound(scenario);
  EXPECT_EQ(most_inside(alone), 1);
  EXPECT_EQ(alone.metrics.requests_finished, crowded.metrics.requests_finished);
  // Room for whole answers is kept by the policy itself.
  scenario.serving.policy = policy_named("no_evict");
  const Outcome reserved = sound(scenario);
  scenario.serving.reserved_decode_tokens = 0;
  expect_same_figures(reserved, sound(scenario), 0);
}

// DecodePreallocQueue of SGLang leaves 512 tokens free for each; vLLM and TensorRT-LLM leave none.
TEST(Push, TokensStayFreeAsEnginesKeepThem) {
  EXPECT_EQ(toys::shipped("serving", "sglang").serving.reserved_decode_tokens, 512);
  EXPECT_EQ(toys::shipped("serving", "vllm-v1").serving.reserved_decode_tokens, 0);
  EXPECT_EQ(toys::shipped("serving", "tensorrt-llm").serving.reserved_decode_tokens, 0);
}

TEST(Push, HardlyAnyRoomIsNoDeadlock) {
  for (const std::int64_t blocks : {150, 200, 260}) {
    Scenario scenario = pushed(two_pools(2));
    scenario.load.lengths = {.prompt = 2000, .output = 300};
    scenario.load.requests = 40;
    scenario.serving.kv_blocks = scenario.prefill.deployment.serving.kv_blocks = blocks;
    EXPECT_EQ(sound(scenario).requests.size(), 40u);
  }
}

// Of n clients and s seats in a closed loop n - s wait: each (n - s) / s of the time that an answer takes, and that for the
// first token. The others come as fast as if nobody waited.
TEST(TwoPools, WhoFindsNoSeatWaitsForTheFirstToken) {
  Scenario scenario = two_pools(2);
  scenario.load.arrivals = ArrivalKind::closed;
  scenario.load.lengths = {.prompt = 100, .output = 200};
  scenario.load.requests = 1200;
  scenario.load.clients = 10;
  const Outcome seated = sound(scenario);
  scenario.load.clients = 12;
  scenario.serving.max_num_seqs = 10;
  const Outcome waiting = sound(scenario);
  struct Means {
    double before = 0, after = 0;  // the first token
  };
  const auto means = [](const Outcome& outcome) {
    Means sum;
    for (const RequestRow& row : outcome.requests) {
      sum.before += (row.first_token - row.arrival).value / 1200;
      sum.after += (row.finish - row.first_token).value / 1200;
    }
    return sum;
  };
  EXPECT_NEAR(means(waiting).before / means(waiting).after, 0.2, 0.02);
  EXPECT_NEAR(means(waiting).after / means(seated).after, 1, 0.01);
}

// Those that come take no blocks that somebody who was pushed out needs to read again: few are pushed out twice.
TEST(TwoPools, WhoReadsAgainIsNotPushedOutTimeAndAgain) {
  double preempted = 0, requests = 0;
  for (const std::int64_t seed : {0, 1, 2, 3, 4, 5}) {
    Scenario scenario = two_pools(2);
    scenario.seed = seed;
    scenario.serving.kv_blocks = 700;
    scenario.serving.max_num_batched_tokens = 512;
    scenario.prefill.deployment.serving.kv_blocks = 20'000;
    scenario.load.rate = RequestsPerSecond{70};
    scenario.load.requests = 1000;
    scenario.load.lengths = {.distribution = LengthKind::lognormal,
                             .prompt = 600,
                             .output = 100,
                             .prompt_cv = 1.5,
                             .prompt_max = 3800};
    for (const RequestRow& row : sound(scenario).requests) {
      preempted += double(row.preemptions);
      requests += 1;
    }
  }
  EXPECT_LT(preempted, 0.05 * requests);
}

// Whoever is short of something, readers or those that set blocks aside, turns requests away, and those let in wait less.
TEST(Push, TurnsAwayWhoWouldWaitTooLong) {
  for (const bool readers_are_short : {false, true}) {
    Scenario scenario = pushed(two_pools(2));
    scenario.load.rate = RequestsPerSecond{readers_are_short ? 300.0 : 60.0};
    scenario.load.requests = 2000;
    if (!readers_are_short) scenario.serving.kv_blocks = 300;
    const Metrics all = sound(scenario).metrics;
    Scenario few = scenario;
    ServingSettings& short_of_something =
        readers_are_short ? few.prefill.deployment.serving : few.serving;
    short_of_something.admission.max_queue = 3;
    const Metrics let_in = sound(few).metrics;
    EXPECT_GT(let_in.requests_shed, 20) << readers_are_short;
    EXPECT_EQ(let_in.requests_shed + let_in.requests_finished, all.requests_finished);
    EXPECT_LT(let_in.ttft_p99, all.ttft_p99) << readers_are_short;
    Scenario soon = scenario;
    soon.slo.ttft.p99 = all.ttft_p50;
    (readers_are_short ? soon.prefill.deployment.serving : soon.serving).admission.shed_late = true;
    const Metrics in_time = sound(soon).metrics;
    EXPECT_GT(in_time.requests_shed, 20) << readers_are_short;
    EXPECT_LT(in_time.ttft_p95.value, 1.3 * all.ttft_p50.value) << readers_are_short;
  }
}

// How long a prompt takes to read is up to who reads it, not to who sets blocks aside for it.
TEST(Push, TellsWhoWillBeLateByThoseWhoRead) {
  const auto read_by = [](double speed) {
    Scenario scenario = pushed(two_pools(2));
    scenario.load.rate = RequestsPerSecond{0.5};
    scenario.load.requests = 50;
    scenario.load.lengths = {.prompt = 2000, .output = 4};
    Device& reader = scenario.prefill.deployment.device;
    for (Device* device : {&scenario.device, &reader}) {
      device->scale_out.bandwidth = BytesPerSecond{1e18};
      device->scale_out.latency = Seconds{0};
    }
    reader.peak.bf16 = reader.peak.bf16 * speed;
    reader.memory_bandwidth = reader.memory_bandwidth * speed;
    return scenario;
  };
  // Only those who set blocks aside turn anybody away: nobody where all are in time, and all where nobody is.
  const double usual = sound(read_by(1)).metrics.ttft.value;
  Scenario fast = read_by(20), slow = read_by(0.05);
  ASSERT_LT(sound(fast).metrics.ttft_p99.value, usual / 2);
  ASSERT_GT(sound(slow).metrics.ttft_p50.value, usual * 5);
  fast.serving.admission.shed_late = slow.serving.admission.shed_late = true;
  fast.slo.ttft.p99 = Seconds{usual / 2};
  slow.slo.ttft.p99 = Seconds{usual * 5};
  EXPECT_EQ(sound(fast).metrics.requests_shed, 0);
  EXPECT_NE(evaluate(slow).status, Status::ok);  // nobody is answered
}

// A node's devices share its rails: twice as many carry twice as much, and one for each device is what there is by default.
TEST(Rails, CarryInProportionToTheirNumber) {
  const auto way = [](std::int64_t rails) {
    Scenario scenario = two_pools(2);
    scenario.load.arrivals = ArrivalKind::closed;
    scenario.load.clients = 1;
    scenario.load.requests = 3;
    scenario.load.lengths = {.prompt = 2000, .output = 4};
    scenario.device.scale_out.latency = Seconds{0};
    scenario.prefill.deployment.device = scenario.device;
    scenario.transfer.rails = rails;
    return sound(scenario);
  };
  const double one = way(1).metrics.transfer.value;
  EXPECT_GT(one, 0);
  EXPECT_NEAR(way(2).metrics.transfer.value, one / 2, kSameMoment);
  EXPECT_NEAR(way(4).metrics.transfer.value, one / 4, kSameMoment);
  expect_same_figures(way(2), way(0), 0);
}

// What stays inside a node takes no fabric, and a fabric that carries less than its adapters is one where they are used.
TEST(Oversubscription, IsOfAFabricThatIsTaken) {
  const auto served = [](std::int64_t devices, double oversubscription) {
    Scenario scenario = two_pools(devices);
    scenario.transfer.oversubscription = oversubscription;
    return sound(scenario);
  };
  expect_same_figures(served(1, 1), served(1, 64), 0);
  EXPECT_GT(served(2, 64).metrics.transfer, served(2, 1).metrics.transfer * 8);
}

// A long way makes every KV cache later by its latency, and keeps none of the others waiting.
TEST(LongWays, DelayEachKvCacheAndNothingElse) {
  const auto transfer = [](double latency) {
    Scenario scenario = two_pools(2);
    scenario.transfer.link = {.topology = Topology::fabric,
                              .bandwidth = BytesPerSecond{1.5e9},
                              .latency = Seconds{latency},
                              .devices = 1024};
    scenario.load.requests = 2000;
    return sound(scenario).metrics.transfer.value;
  };
  const double none = transfer(0);
  EXPECT_GT(none, 0.02);
  for (const double latency : {0.05, 0.5, 5.0}) {
    EXPECT_NEAR(transfer(latency) - none, latency, 0.1 * none) << latency;
  }
}

Scenario contended(Scenario scenario) {
  scenario.transfer.contention = TransferContention::collectives;
  return scenario;
}

TEST(Contention, IsNoneWhereCollectivesStayInsideANode) {
  const Scenario inside = two_pools(2);
  Outcome a = sound(inside), b = sound(contended(inside));
  EXPECT_EQ(b.metrics.transfer_slowdown, 1);
  EXPECT_EQ(b.metrics.collective_slowdown, 1);
  b.metrics.transfer_slowdown = a.metrics.transfer_slowdown;
  b.metrics.collective_slowdown = a.metrics.collective_slowdown;
  expect_same_figures(a, b, 0);
  // Nor where KV caches have a link of their own.
  Scenario own = two_pools(4);
  own.transfer.link = own.device.scale_out;
  expect_same_figures(sound(own), sound(contended(own)), 0);
}

// Whoever shares half of an adapter takes at most twice as long; more traffic slows collectives more.
TEST(Contention, SlowsBothByNoMoreThanHalfOfTheAdapters) {
  double before = 1;
  for (const std::int64_t prompt : {500, 2000, 4000}) {
    Scenario across = two_pools(4);
    across.load.lengths = {.prompt = prompt, .output = 40};
    across.load.rate = RequestsPerSecond{10};
    const Outcome alone = sound(across), shared = sound(contended(across));
    EXPECT_GT(shared.metrics.transfer_slowdown, 1);
    EXPECT_LE(shared.metrics.transfer_slowdown, 2);
    EXPECT_GT(shared.metrics.collective_slowdown, before);
    EXPECT_LE(shared.metrics.collective_slowdown, 2);
    before = shared.metrics.collective_slowdown;
    EXPECT_GT(shared.metrics.tpot, alone.metrics.tpot);
    EXPECT_GT(shared.metrics.transfer, alone.metrics.transfer);
  }
}

}  // namespace
}  // namespace engine

// KV caches of prefixes below the device's memory: what they bring, what they cost, and what they leave as it was.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>

#include "engine/evaluate.h"
#include "engine/memory/kv_tier.h"
#include "tests/support/serving_laboratory.h"
#include "tests/support/serving_toys.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

using toys::Laboratory;

// Sessions whose history does not fit the device for long.
Scenario sessions() {
  Scenario scenario = toys::scenario();
  scenario.task = Task::serve;
  scenario.load.turns = 4;
  scenario.load.think_time = Seconds{2};
  scenario.load.rate = RequestsPerSecond{4};
  scenario.load.requests = 400;
  scenario.load.lengths = {.prompt = 100, .output = 20};
  scenario.serving.prefix_caching = true;
  scenario.serving.kv_blocks = 160;
  scenario.device.host_link = {.name = "bus",
                               .topology = Topology::fabric,
                               .bandwidth = BytesPerSecond{1e12},
                               .latency = Seconds{1e-9},
                               .devices = 8};
  return scenario;
}

TEST(ServingTiers, ATierThatHoldsEverythingFindsEveryTurn) {
  const Metrics none = evaluate(sessions()).metrics;
  Scenario scenario = sessions();
  scenario.serving.tiers.host = Bytes{1e12};
  const Outcome outcome = evaluate(scenario);
  ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
  const Metrics& all = outcome.metrics;
  // Three of four turns begin with what was said before.
  EXPECT_LT(none.prefix_hit_rate, 0.3);
  EXPECT_GT(all.prefix_hit_rate, none.prefix_hit_rate + 0.2);
  EXPECT_GT(all.host_hit_rate, 0.2);
  EXPECT_LE(all.host_hit_rate, all.prefix_hit_rate + 1e-9);
  EXPECT_LT(all.ttft, none.ttft);
  EXPECT_GT(all.kv_load.value, 0);
  EXPECT_TRUE(std::isnan(all.disk_hit_rate));
  // As much as with a device that holds everything.
  Scenario large = sessions();
  large.serving.kv_blocks = 100'000;
  EXPECT_NEAR(all.prefix_hit_rate, evaluate(large).metrics.prefix_hit_rate, 0.02);
}

// However full the device is: what is loaded has room, and nobody takes it before it is used.
TEST(ServingTiers, WhatLiesBelowIsFoundInAnOverloadToo) {
  for (const auto policy :
       {policy_named("vllm_v1"), policy_named("sglang"), policy_named("sarathi")}) {
    for (const double rate : {4.0, 40.0, 400.0}) {
      Scenario scenario = sessions();
      scenario.serving.policy = policy;
      scenario.load.rate = RequestsPerSecond{rate};
      Scenario large = scenario;
      large.serving.kv_blocks = 100'000;
      scenario.serving.tiers.host = Bytes{1e12};
      const Metrics tight = evaluate(scenario).metrics;
      EXPECT_GT(tight.prefix_hit_rate, 0.9 * evaluate(large).metrics.prefix_hit_rate)
          << name_of(policy) << " " << rate << ", preempted " << tight.preemptions;
      EXPECT_LE(tight.kv_peak, 1);
    }
  }
}

TEST(ServingTiers, MoreRoomBelowNeverFindsLess) {
  double before = -1;
  for (const double bytes : {0.0, 3e5, 1e6, 3e6, 1e7, 1e9}) {
    Scenario scenario = sessions();
    scenario.serving.tiers.host = Bytes{bytes};
    const double rate = evaluate(scenario).metrics.prefix_hit_rate;
    EXPECT_GE(rate, before - 0.01) << bytes;
    before = rate;
  }
}

// Two prompts of a hundred blocks in turns, on a device that has room for one of them.
Resources two_prompts_in_turns() {
  auto trace = std::make_shared<Trace>();
  trace->block_tokens = 4;
  trace->first_block.push_back(0);
  for (int i = 0; i < 12; ++i) {
    trace->arrival.push_back(double(i));
    trace->prompt.push_back(402);
    trace->output.push_back(4);
    for (int block = 0; block < 100; ++block) {
      trace->blocks.push_back(std::uint64_t(1000 * (i % 2) + block + 1));
    }
    trace->first_block.push_back(std::uint32_t(trace->blocks.size()));
  }
  Resources resources;
  resources.traces["toy"] = std::move(trace);
  return resources;
}

// What the device gives up for a load goes where the load comes from. It takes no room of what is loaded: two prompts in turns
// find together what there is room for.
TEST(ServingTiers, RoomForALoadDoesNotPushOutWhatIsLoaded) {
  const Resources resources = two_prompts_in_turns();
  const auto found_with = [&](double blocks) {
    Scenario scenario = toys::served(policy_named("vllm_v1"));
    scenario.serving.prefix_caching = true;
    scenario.serving.kv_blocks = 120;
    scenario.serving.tiers.write = TierWrite::eviction;
    scenario.serving.tiers.host_bandwidth = BytesPerSecond{1e15};
    scenario.device.host_link = sessions().device.host_link;
    const double token = evaluate(scenario, resources).metrics.kv_per_token.value;
    scenario.serving.tiers.host = Bytes{blocks * 4 * token};
    const Outcome outcome = evaluate(scenario, resources);
    EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
    return outcome.metrics.host_hit_rate;
  };
  // Of its hundred blocks, a prompt loses all but those that the other one and its answer leave.
  const double lost = 100 - (120 - std::ceil(405 / 4.0)), all = found_with(1e6);
  EXPECT_GT(all, 0.6);
  for (const double share : {0.2, 0.5, 0.75, 1.0}) {
    EXPECT_NEAR(found_with(share * 2 * lost) / all, share, 0.02) << share;
  }
}

// Whoever waits for KV from below is in the system: the timeline has everybody who has come and is not answered.
TEST(ServingTiers, WhoeverLoadsIsWaiting) {
  Scenario scenario = sessions();
  scenario.output.requests = true;
  scenario.output.timeline = Seconds{1e-3};
  scenario.output.timeline_moments = 1'000'000;
  scenario.serving.tiers.disk = Bytes{1e12};
  scenario.serving.tiers.disk_bandwidth = BytesPerSecond{1e15};
  scenario.serving.tiers.disk_latency = Seconds{2e-4};
  const Outcome outcome = evaluate(scenario);
  ASSERT_GT(outcome.metrics.disk_hit_rate, 0.2);
  double inside = 0, expected = 0;
  for (const TimelineRow& row : outcome.timeline) {
    inside += double(row.waiting + row.running);
    expected += double(std::ranges::count_if(outcome.requests, [&](const RequestRow& request) {
      return request.arrival <= row.time && request.finish > row.time;
    }));
  }
  EXPECT_EQ(inside, expected);
}

// What takes longer to load than to read is read.
TEST(ServingTiers, ASlowTierIsLeftAlone) {
  const Metrics none = evaluate(sessions()).metrics;
  Scenario scenario = sessions();
  scenario.serving.tiers.disk = Bytes{1e12};
  scenario.serving.tiers.disk_bandwidth = BytesPerSecond{1};
  const Metrics slow = evaluate(scenario).metrics;
  EXPECT_EQ(slow.disk_hit_rate, 0);
  EXPECT_EQ(slow.e2e, none.e2e);
  EXPECT_EQ(slow.ttft_p99, none.ttft_p99);
  scenario.serving.tiers.disk_bandwidth = BytesPerSecond{1e15};
  scenario.serving.tiers.disk_latency = Seconds{0};
  EXPECT_GT(evaluate(scenario).metrics.disk_hit_rate, 0.2);
}

TEST(ServingTiers, WhatTheHostGivesUpGoesToTheDisk) {
  Scenario scenario = sessions();
  scenario.serving.tiers.host = Bytes{1e6};
  const Metrics host = evaluate(scenario).metrics;
  scenario.serving.tiers.disk = Bytes{1e12};
  scenario.serving.tiers.disk_bandwidth = BytesPerSecond{1e15};
  scenario.serving.tiers.disk_latency = Seconds{0};
  const Metrics both = evaluate(scenario).metrics;
  EXPECT_GT(both.disk_hit_rate, 0);
  EXPECT_GT(both.prefix_hit_rate, host.prefix_hit_rate);
  scenario.serving.tiers.write = TierWrite::eviction;
  EXPECT_GT(evaluate(scenario).metrics.prefix_hit_rate, host.prefix_hit_rate);
}

// What a tier is called changes where its hits are written down, and nothing else.
TEST(ServingTiers, APeerIsAHostWithAnotherLink) {
  Scenario host = sessions();
  host.serving.tiers.host = Bytes{2e8};
  host.serving.tiers.host_bandwidth = BytesPerSecond{2e12};
  host.device.host_link.latency = Seconds{2e-6};
  Scenario peer = sessions();
  peer.serving.tiers.peer = Bytes{2e8};
  peer.serving.tiers.peer_bandwidth = BytesPerSecond{2e12};
  peer.device.scale_up = host.device.host_link;
  const Metrics a = evaluate(host).metrics, b = evaluate(peer).metrics;
  EXPECT_GT(a.host_hit_rate, 0);
  EXPECT_EQ(a.host_hit_rate, b.peer_hit_rate);
  EXPECT_EQ(a.prefix_hit_rate, b.prefix_hit_rate);
  EXPECT_EQ(a.e2e, b.e2e);
  EXPECT_EQ(a.kv_load, b.kv_load);
}

// What each copy takes to start is paid for every block, or for every layer of one.
TEST(ServingTiers, SmallerPiecesTakeLonger) {
  const auto loading = [](KvPieces pieces, double start) {
    Scenario scenario = sessions();
    scenario.model.layers = 4;
    scenario.device.launch_latency = Seconds{0};
    scenario.device.host_link.latency = Seconds{start};
    scenario.serving.tiers.host = Bytes{1e12};
    scenario.serving.tiers.pieces = pieces;
    const Outcome outcome = evaluate(scenario);
    EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
    return outcome.metrics.kv_load.value;
  };
  const double start = 1e-7;
  const double gathered = loading(KvPieces::gathered, start);
  const double blocks = loading(KvPieces::blocks, start);
  const double layers = loading(KvPieces::layers, start);
  // Four layers have eight pieces of a block.
  EXPECT_GT(blocks, gathered);
  EXPECT_NEAR(layers - gathered, 8 * (blocks - gathered), 1e-3 * layers);
  EXPECT_NEAR(loading(KvPieces::layers, 0), loading(KvPieces::gathered, 0), 1e-12);
}

// Of sessions that meet several replicas in turn, a store of one replica is a disk; of several it knows what others read.
TEST(ServingTiers, AStoreIsADiskThatAllReplicasShare) {
  const auto with = [](std::int64_t replicas, bool shared, double bytes) {
    Scenario scenario = sessions();
    scenario.serving.replicas = replicas;
    KvTierSettings& tiers = scenario.serving.tiers;
    tiers.disk_bandwidth = tiers.store_bandwidth = BytesPerSecond{1e15};
    tiers.disk_latency = tiers.store_latency = Seconds{1e-6};
    (shared ? tiers.store : tiers.disk) = Bytes{bytes};
    return evaluate(scenario).metrics;
  };
  const Metrics disk = with(1, false, 2e8), store = with(1, true, 2e8);
  EXPECT_GT(disk.disk_hit_rate, 0);
  EXPECT_EQ(disk.disk_hit_rate, store.store_hit_rate);
  EXPECT_EQ(disk.e2e, store.e2e);
  for (const std::int64_t replicas : {2, 3}) {
    const Metrics apart = with(replicas, false, 1e12), together = with(replicas, true, 1e12);
    EXPECT_GT(together.prefix_hit_rate, apart.prefix_hit_rate + 0.1);
    // As much as one replica that holds everything.
    EXPECT_NEAR(together.prefix_hit_rate, with(1, true, 1e12).prefix_hit_rate, 0.03);
  }
  double before = -1;
  for (const double bytes : {0.0, 1e7, 5e7, 2e8, 1e9}) {
    const double rate = with(3, true, bytes).prefix_hit_rate;
    EXPECT_GE(rate, before - 0.01) << bytes;
    before = rate;
  }
}

// Loads of all replicas follow one another out of the store; one alone gets no more than its link.
TEST(ServingTiers, AStoresBandwidthIsShared) {
  const auto load_seconds = [](double bandwidth, double link) {
    Scenario scenario = sessions();
    scenario.serving.replicas = 4;
    scenario.load.rate = RequestsPerSecond{16};
    scenario.model.layers *= 4;
    KvTierSettings& tiers = scenario.serving.tiers;
    tiers.store = Bytes{1e12};
    tiers.store_latency = Seconds{0};
    tiers.store_bandwidth = BytesPerSecond{bandwidth};
    tiers.store_link = BytesPerSecond{link};
    return evaluate(scenario).metrics.kv_load.value;
  };
  const double free = load_seconds(1e15, 0);
  EXPECT_GT(load_seconds(1e10, 0), free);
  EXPECT_GT(load_seconds(1e15, 1e10), free);
  // A link as wide as the store is no limit.
  EXPECT_EQ(load_seconds(1e10, 1e10), load_seconds(1e10, 0));
}

// Random cases of the equality laws, with tiers below.
TEST(ServingTiers, NothingIsLostAndTheClosedFormEqualsStepping) {
  double loads = 0;
  for (std::uint64_t number = 0; number < 300; ++number) {
    Laboratory lab(toys::random_case(number));
    toys::Dice dice(55'000'000 + number);
    Scenario& scenario = lab.made.scenario;
    scenario.serving.prefix_caching = true;
    scenario.serving.tiers.write = dice.chance(0.5) ? TierWrite::through : TierWrite::eviction;
    PoolSetup pool = lab.pool();
    pool.tiers = {TierSetup{.blocks = dice.whole(-20, 20), .seconds_per_token = 5e-7},
                  {.blocks = dice.whole(0, 60), .seconds_per_token = 1e-6, .latency = 1e-5},
                  {.blocks = dice.whole(0, 200), .seconds_per_token = 2e-6, .latency = 1e-4},
                  {.blocks = dice.whole(-300, 300),
                   .seconds_per_token = 1e-6,
                   .latency = 3e-4,
                   .seconds_per_token_alone = 4e-6}};
    scenario.serving.stepping = false;
    const ServingStats::Summary fast = lab.run({&pool, 1}, {});
    std::map<std::int64_t, RequestRow> rows;
    for (const RequestRow& row : lab.rows) rows[row.number] = row;
    const std::string which = "case " + std::to_string(number);
    EXPECT_EQ(fast.tokens_in + fast.tokens_out + fast.tokens_refused, lab.offered_tokens())
        << which;
    for (const Replica& replica : lab.sim.replicas()) {
      EXPECT_EQ(replica.pool().free(), replica.pool().total()) << which;
      EXPECT_EQ(replica.outstanding(), 0) << which;
    }
    scenario.serving.stepping = true;
    const ServingStats::Summary slow = lab.run({&pool, 1}, {});
    for (const RequestRow& row : lab.rows) {
      const RequestRow& other = rows[row.number];
      EXPECT_EQ(row.cached_tokens, other.cached_tokens) << which;
      if (row.end != RequestEnd::finished) continue;
      EXPECT_NEAR(row.finish.value / other.finish.value, 1, 1e-9) << which;
    }
    EXPECT_EQ(fast.tier_tokens, slow.tier_tokens) << which;
    loads += fast.loads;
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(loads, 300);
}

TEST(KvTier, GivesUpTheLeastRecentlyUsedFromItsEnd) {
  KvTier tier, lower;
  tier.reset(10);
  lower.reset(100);
  tier.spill_to(&lower);
  tier.store(1, 6);
  tier.store(2, 3);
  tier.touch(1);
  tier.store(3, 3);  // two too many: 2 was not used for longest
  EXPECT_EQ(tier.blocks(2), 1);
  EXPECT_EQ(tier.blocks(1), 6);
  EXPECT_EQ(lower.blocks(2), 3);
  tier.store(4, 30);  // as much as there is room for
  EXPECT_EQ(tier.blocks(4), 10);
  EXPECT_EQ(tier.blocks(1), 0);
  EXPECT_EQ(lower.blocks(1), 6);
}

}  // namespace
}  // namespace engine

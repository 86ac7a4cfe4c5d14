// Requests that are read in one pool and written in another: nothing is lost on the way, the closed form
// equals stepping, and the limits that one can reason about hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>

#include "tests/support/serving_laboratory.h"

namespace engine {
namespace {

using toys::Laboratory;

constexpr Carry kFree{};

Journey over(const Carry& carry) {
  return {.stages = {Stage{.pool = 0, .reads = true, .writes = false},
                     Stage{.pool = 1, .reads = false, .writes = true, .carry = carry}}};
}

// A random case in two pools of its machine: the readers have settings and room of their own.
struct TwoPools {
  Laboratory lab;
  ServingSettings readers;
  Carry carry;
  std::int64_t short_prompt = 0;
  std::optional<PoolSetup::WayBack> way_back;

  explicit TwoPools(std::uint64_t number) : lab(toys::random_case(number)) {
    toys::Dice dice(77'000'000 + number);
    readers = lab.made.scenario.serving;
    readers.policy = dice.one_of<PolicyName>();
    readers.replicas = dice.whole(1, 3);
    readers.router = dice.one_of<RouterName>();
    readers.block_size = dice.whole(1, 32);
    readers.kv_blocks = (220 + dice.whole(0, 600)) / readers.block_size + 1;
    readers.prefix_caching = dice.chance(0.5);
    if (dice.chance(0.7)) {
      const double sent = std::exp(dice.between(std::log(1e-5), std::log(1e-2)));
      carry = {.token = {.sent = sent, .received = sent * dice.between(0.3, 3)},
               .latency = dice.between(0, 0.01),
               .last_share = dice.chance(0.5) ? 0.05 : 1,
               .tells_first_token = dice.chance(0.5)};
    }
    if (dice.chance(0.3)) short_prompt = dice.whole(1, 100);
    carry.remakes_first_token = carry.tells_first_token && dice.chance(0.5);
    if (dice.chance(0.5)) way_back = PoolSetup::WayBack{dice.between(0, 1e-4), 1e-4};
  }
  ServingStats::Summary run(bool stepping = false) {
    readers.stepping = lab.made.scenario.serving.stepping = stepping;
    PoolSetup reading = lab.pool();
    PoolSetup pools[] = {{.settings = readers,
                          .context = lab.context,
                          .kv_blocks = readers.kv_blocks,
                          .replicas = readers.replicas,
                          .longest = reading.longest},
                         lab.pool()};
    pools[1].from_host = way_back;
    Journey journey = over(carry);
    journey.short_prompt = short_prompt;
    return lab.run(pools, journey);
  }
};

TEST(ServingPools, NothingIsLostBetweenThem) {
  double carried = 0, preempted = 0;
  for (std::uint64_t number = 0; number < 300; ++number) {
    TwoPools two(number);
    const ServingStats::Summary summary = two.run();
    const Scenario& scenario = two.lab.made.scenario;
    const std::string which = "case " + std::to_string(number);
    EXPECT_EQ(summary.tokens_in + summary.tokens_out + summary.tokens_refused,
              two.lab.offered_tokens())
        << which;
    double seconds_inside = 0;
    for (const RequestRow& row : two.lab.rows) {
      if (row.end != RequestEnd::finished) continue;
      seconds_inside += row.finish.value - row.arrival.value;
      EXPECT_LE(row.arrival.value, row.scheduled.value) << which;
      EXPECT_LT(row.scheduled.value, row.first_token.value) << which;
      EXPECT_LE(row.first_token.value, row.finish.value) << which;
    }
    // Little: the time that requests spend inside is the integral of how many there are.
    EXPECT_NEAR(seconds_inside, summary.in_system_seconds, 1e-9 * (1 + seconds_inside)) << which;
    for (const Replica& replica : two.lab.sim.replicas()) {
      EXPECT_EQ(replica.pool().free(), replica.pool().total()) << which;
      EXPECT_EQ(replica.outstanding(), 0) << which;
      EXPECT_EQ(replica.waiting(), 0) << which;
    }
    const double lanes =
        double((two.readers.replicas + scenario.serving.replicas) * scenario.parallel.pp);
    EXPECT_NEAR((summary.busy + two.lab.sim.idle_seconds()) / (two.lab.sim.makespan() * lanes), 1,
                1e-9)
        << which;
    ASSERT_FALSE(HasFailure());
    carried += summary.carried_tokens;
    preempted += two.lab.sim.stats().pool(1).preemptions;
  }
  EXPECT_GT(carried, 10'000);
  EXPECT_GT(preempted, 50);
}

TEST(ServingPools, TheClosedFormEqualsStepping) {
  for (std::uint64_t number = 1000; number < 1300; ++number) {
    TwoPools two(number);
    const ServingStats::Summary fast = two.run();
    std::map<std::int64_t, RequestRow> rows;
    for (const RequestRow& row : two.lab.rows) rows[row.number] = row;
    const ServingStats::Summary slow = two.run(true);
    const std::string which = "case " + std::to_string(number);
    ASSERT_EQ(rows.size(), two.lab.rows.size()) << which;
    for (const RequestRow& row : two.lab.rows) {
      const RequestRow& other = rows[row.number];
      EXPECT_EQ(row.end, other.end) << which;
      EXPECT_EQ(row.replica, other.replica) << which;
      EXPECT_EQ(row.preemptions, other.preemptions) << which;
      if (row.end != RequestEnd::finished) continue;
      EXPECT_NEAR(row.first_token.value / other.first_token.value, 1, 1e-9) << which;
      EXPECT_NEAR(row.finish.value / other.finish.value, 1, 1e-9) << which;
    }
    EXPECT_NEAR(fast.busy, slow.busy, 1e-9 * fast.busy) << which;
    EXPECT_NEAR(fast.steps, slow.steps, 1e-9 * fast.steps) << which;
    EXPECT_NEAR(fast.kv_token_seconds, slow.kv_token_seconds, 1e-9 * fast.kv_token_seconds)
        << which;
    EXPECT_EQ(fast.carried_tokens, slow.carried_tokens) << which;
    EXPECT_EQ(fast.kv_peak, slow.kv_peak) << which;
    ASSERT_FALSE(HasFailure());
  }
}

// Requests that meet nobody else: who reads and who writes does not matter, if carrying takes no time.
TEST(ServingPools, AloneAndOverAFreeLinkARequestTakesAsLongAsInOnePool) {
  for (std::uint64_t number = 0; number < 60; ++number) {
    TwoPools two(number);
    Scenario& scenario = two.lab.made.scenario;
    scenario.load.arrivals = ArrivalKind::deterministic;
    scenario.load.rate = RequestsPerSecond{1e-3};
    scenario.load.turns = 1;
    scenario.serving.prefix_caching = two.readers.prefix_caching = false;
    two.readers.policy = scenario.serving.policy;
    two.carry = kFree;
    two.short_prompt = 0;
    two.run();
    const std::vector<RequestRow> apart = two.lab.rows;
    two.lab.run();
    ASSERT_EQ(apart.size(), two.lab.rows.size());
    for (std::size_t i = 0; i < apart.size(); ++i) {
      if (apart[i].end != RequestEnd::finished) continue;
      EXPECT_NEAR(apart[i].first_token.value, two.lab.rows[i].first_token.value, 1e-9) << number;
      EXPECT_NEAR(apart[i].finish.value, two.lab.rows[i].finish.value, 1e-9) << number;
    }
  }
}

// A machine on which prompts take next to no time.
struct Lightning {
  Device device;
  HostSettings host = toys::no_host();
  Fabric fabric;
  ModelShard shard;
  StepContext context;

  static Device faster(Device device) {
    device.peak.bf16 = device.peak.fp16 = device.vector_peak = FlopsPerSecond{1e30};
    device.memory_bandwidth = device.l2_bandwidth = BytesPerSecond{1e30};
    device.launch_latency = Seconds{1e-18};
    return device;
  }
  explicit Lightning(const Scenario& scenario)
      : device(faster(toys::gpu())),
        fabric(fabric_of(scenario.cluster, device)),
        shard(shard_of(scenario.model, {}, scenario.quant)),
        context{device, fabric, shard, host} {}
};

TEST(ServingPools, OverAFreeLinkWritersSeeNothingButTheDeparturesOfReaders) {
  int compared = 0;
  for (std::uint64_t number = 2000; number < 2060; ++number) {
    TwoPools two(number);
    Scenario& scenario = two.lab.made.scenario;
    scenario.load.turns = 1;
    scenario.serving.prefix_caching = two.readers.prefix_caching = false;
    scenario.serving.router = router_named("round_robin");
    two.carry = kFree;
    two.short_prompt = 0;
    two.way_back.reset();
    two.run();
    std::vector<RequestRow> rows = two.lab.rows;
    std::erase_if(rows, [](const RequestRow& row) {
      return row.end != RequestEnd::finished || row.output_tokens == 1;
    });
    std::ranges::stable_sort(rows, {}, [](const RequestRow& row) { return row.first_token; });
    // Two that depart together may go on in either order.
    const auto together = [](const RequestRow& a, const RequestRow& b) {
      return b.first_token.value - a.first_token.value < 1e-6;
    };
    if (rows.empty() || std::ranges::adjacent_find(rows, together) != rows.end()) continue;

    auto departures = std::make_shared<Trace>();
    for (const RequestRow& row : rows) {
      departures->arrival.push_back(row.first_token.value);
      departures->prompt.push_back(std::int32_t(row.prompt_tokens));
      departures->output.push_back(std::int32_t(row.output_tokens));
    }
    scenario.load.arrivals = ArrivalKind::trace;
    scenario.load.requests = 0;
    two.lab.made.resources.traces["toy"] = departures;
    const Lightning lightning(scenario);
    ServingSettings reading = scenario.serving;
    reading.policy = policy_named("vllm_v1");
    reading.max_num_seqs = reading.max_num_batched_tokens = 1'000'000;
    const PoolSetup pools[] = {{.settings = reading,
                                .context = lightning.context,
                                .kv_blocks = 1'000'000,
                                .longest = scenario.model.max_context},
                               two.lab.pool()};
    two.lab.run(pools, over(kFree));
    ASSERT_EQ(two.lab.rows.size(), rows.size());
    std::ranges::sort(two.lab.rows, {}, &RequestRow::number);
    // A trace begins with its first row.
    const double begin = rows[0].first_token.value;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_NEAR(two.lab.rows[i].finish.value + begin, rows[i].finish.value, 1e-8) << number;
      ++compared;
    }
    ASSERT_FALSE(HasFailure()) << number;
  }
  EXPECT_GT(compared, 200);
}

// ---- by hand: every step takes 10 ms, blocks hold 4 tokens -------------------------------------------

struct ByHand {
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  Resources resources;
  Fabric fabric = fabric_of(scenario.cluster, scenario.device);
  ModelShard shard = shard_of(scenario.model, scenario.parallel, scenario.quant);
  StepContext context{scenario.device, fabric, shard, scenario.host};
  ServingSim sim;
  std::vector<RequestRow> rows;
  std::int64_t short_prompt = 0;

  void run(std::int64_t reader_blocks, std::int64_t writer_blocks, const Carry& carry) {
    const auto pool = [this](std::int64_t blocks) {
      return PoolSetup{.settings = scenario.serving,
                       .context = context,
                       .kv_blocks = blocks,
                       .longest = scenario.model.max_context};
    };
    const PoolSetup pools[] = {pool(reader_blocks), pool(writer_blocks)};
    const Trace* trace = resources.find_trace("toy");
    rows.clear();
    Journey journey = over(carry);
    journey.short_prompt = short_prompt;
    sim.run({.pools = pools,
             .journey = journey,
             .load = scenario.load,
             .trace = trace,
             .slo = scenario.slo,
             .plan = run_plan(scenario.load, {}, trace),
             .audit = true,
             .output = scenario.output,
             .request_rows = &rows});
    std::ranges::sort(rows, {}, &RequestRow::number);
  }
};

TEST(ServingPools, ARequestIsReadCarriedAndWritten) {
  ByHand two;
  two.resources = toys::trace({{0, 8, 4}, {0.012, 8, 2}, {0.5, 8, 1}});
  // 8 tokens take 8 ms, and 2 ms of latency.
  two.run(100, 100, {.token = {.sent = 1e-3, .received = 5e-4}, .latency = 2e-3});
  // Read by 10 ms, there by 20 ms, three more tokens.
  EXPECT_NEAR(two.rows[0].first_token.value, 0.010, 1e-9);
  EXPECT_NEAR(two.rows[0].finish.value, 0.050, 1e-9);
  // Read by 22 ms. The writer asks for it at its next boundary, 30 ms; there by 40 ms, one more token.
  EXPECT_NEAR(two.rows[1].first_token.value, 0.022, 1e-9);
  EXPECT_NEAR(two.rows[1].finish.value, 0.050, 1e-9);
  // An answer of one token is done when its prompt is read.
  EXPECT_NEAR(two.rows[2].finish.value, 0.510, 1e-9);
  EXPECT_EQ(two.sim.stats().pool(1).carried_tokens, 16);
  EXPECT_NEAR(two.sim.stats().pool(1).carry_seconds, 0.020, 1e-12);
}

// Layers that leave while later ones are computed are there earlier, and the first token with them, but never
// before the last layer.
TEST(ServingPools, LayersLeaveBehindTheReading) {
  const auto run = [](double last_share, bool tells) {
    ByHand two;
    two.resources = toys::trace({{0, 8, 4}});
    two.run(100, 100,
            {.token = {.sent = 1e-3}, .last_share = last_share, .tells_first_token = tells});
    return two.rows[0];
  };
  // Read by 10 ms; carrying takes 8 ms, or an eighth of that.
  EXPECT_NEAR(run(1, false).first_token.value, 0.010, 1e-9);
  EXPECT_NEAR(run(1, true).first_token.value, 0.018, 1e-9);
  EXPECT_NEAR(run(1.0 / 8, true).first_token.value, 0.011, 1e-9);
  EXPECT_NEAR(run(1.0 / 8, true).finish.value, 0.041, 1e-9);
  const RequestRow row = run(1, true);
  EXPECT_NEAR(row.read.value, 0.010, 1e-9);
  EXPECT_NEAR(row.received.value, 0.018, 1e-9);
  EXPECT_EQ(row.carried_tokens, 8);
  EXPECT_EQ(row.reader, 0);
  EXPECT_EQ(row.replica, 1);
}

TEST(ServingPools, ShortPromptsStay) {
  ByHand two;
  two.resources = toys::trace({{0, 8, 4}, {1, 9, 4}});
  two.short_prompt = 8;
  two.run(100, 100, {.latency = 5e-3});
  EXPECT_TRUE(std::isnan(two.rows[0].received.value));
  EXPECT_EQ(two.rows[0].reader, two.rows[0].replica);
  EXPECT_NEAR(two.rows[0].finish.value, 0.040, 1e-9);
  EXPECT_NEAR(two.rows[1].received.value, 1.015, 1e-9);
  EXPECT_NEAR(two.rows[1].finish.value, 1.045, 1e-9);
}

TEST(ServingPools, ReadersWaitWhileWritersAreFull) {
  ByHand two;
  // Prompts of 2 blocks. The writer has room for one request, the reader for one prompt.
  two.resources = toys::trace({{0, 8, 4}, {0, 8, 4}, {0, 8, 4}});
  two.run(3, 4, kFree);
  EXPECT_NEAR(two.rows[0].first_token.value, 0.010, 1e-9);
  EXPECT_NEAR(two.rows[0].finish.value, 0.040, 1e-9);
  // Read meanwhile, but its KV stays with the reader until the first is done.
  EXPECT_NEAR(two.rows[1].first_token.value, 0.020, 1e-9);
  EXPECT_NEAR(two.rows[1].finish.value, 0.070, 1e-9);
  // So the third cannot be read before.
  EXPECT_NEAR(two.rows[2].first_token.value, 0.050, 1e-9);
  EXPECT_NEAR(two.rows[2].finish.value, 0.100, 1e-9);
}

TEST(ServingPools, HardlyAnyRoomIsNoDeadlock) {
  for (std::size_t policy = 0; policy < kPolicies.size(); ++policy) {
    for (const std::int64_t blocks : {5, 6, 8, 12}) {
      ByHand two;
      two.scenario.serving.policy = PolicyName(policy);
      two.scenario.serving.watermark = 0.3;
      two.scenario.load.arrivals = ArrivalKind::deterministic;
      two.scenario.load.trace.clear();
      two.scenario.load.requests = 50;
      two.scenario.load.lengths = {.prompt = 10, .output = 7};
      two.run(blocks, blocks, {.latency = 3e-3});
      EXPECT_EQ(two.sim.stats().summary().finished, 50) << policy << " " << blocks;
    }
  }
}

}  // namespace
}  // namespace engine

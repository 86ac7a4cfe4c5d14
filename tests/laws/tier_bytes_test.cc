// What tiers below the cache move and keep: the bytes that the cache itself holds, once for all devices that have the same ones; and
// how much memory peers can have.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "engine/tasks/serve/kv_room.h"
#include "tests/support/speculation_toys.h"

namespace engine {
namespace {

using toys::sound;

constexpr double kRate = 1e12;  // of every way up, in bytes a second

// One session after another, whose second turn loads the first: the device forgets at once.
Scenario coming_back(const ModelSpec& model) {
  Scenario scenario = toys::scenario();
  scenario.task = Task::serve;
  scenario.model = model;
  scenario.load.arrivals = ArrivalKind::closed;
  scenario.load.turns = 2;
  scenario.load.think_time = Seconds{10};
  scenario.load.requests = 20;
  scenario.load.lengths = {.prompt = 8000, .output = 16};
  scenario.output.requests = true;
  scenario.serving.prefix_caching = true;
  scenario.serving.retention = {.policy = Retention::ttl, .ttl = Seconds{1e-9}};
  KvTierSettings& tiers = scenario.serving.tiers;
  tiers.pieces = KvPieces::gathered;
  tiers.host_bandwidth = tiers.store_bandwidth = BytesPerSecond{kRate};
  tiers.store_latency = Seconds{0};
  scenario.device.host_link.latency = Seconds{1e-12};
  scenario.device.launch_latency = Seconds{0};
  return scenario;
}

ModelSpec windowed() {
  ModelSpec model = toys::model();
  model.window = 1000;
  model.full_attention_every = 5;
  return model;
}

// Bytes that a load brings, over the tokens that are found by it.
double moved_per_token(const Outcome& outcome) {
  double tokens = 0, loads = 0;
  for (const RequestRow& row : outcome.requests) {
    tokens += double(row.cached_tokens);
    loads += row.cached_tokens > 0 ? 1 : 0;
  }
  EXPECT_EQ(loads, 10);
  return outcome.metrics.kv_load.value * kRate / (tokens / loads);
}

TEST(TierBytes, AreThoseThatTheCacheHolds) {
  Scenario drafted = coming_back(toys::model());
  drafted.speculation = {
      .method = SpeculationMethod::draft_model, .tokens = 2, .acceptance = "0.7"};
  for (Scenario scenario : {coming_back(toys::model()), coming_back(toys::latent()),
                            coming_back(windowed()), toys::with_draft(drafted)}) {
    scenario.serving.tiers.host = Bytes{1e12};
    const Outcome outcome = sound(scenario);
    const double held = outcome.metrics.kv_per_token.value;
    EXPECT_NEAR(moved_per_token(outcome), held, 1e-3 * held) << scenario.model.name;
  }
  // Eight layers of ten keep 1,000 tokens of a mean context of about 12,000 in all.
  const double whole = sound(coming_back(toys::model())).metrics.kv_per_token.value;
  EXPECT_LT(sound(coming_back(windowed())).metrics.kv_per_token.value, 0.3 * whole);
}

// All devices have a latent, and devices beyond the KV heads have copies of one another's: a store sends one of each.
TEST(TierBytes, AStoreSendsWhatDevicesShareOnce) {
  ModelSpec few_heads = toys::model();
  few_heads.kv_heads = 2;
  for (const ModelSpec& model : {toys::latent(), few_heads, toys::model()}) {
    Scenario scenario = coming_back(model);
    scenario.serving.tiers.store = Bytes{1e12};
    const double alone = moved_per_token(sound(scenario));
    for (const std::int64_t tp : {2, 4, 8}) {
      scenario.parallel.tp = tp;
      EXPECT_NEAR(moved_per_token(sound(scenario)), alone, 1e-3 * alone) << model.name << " " << tp;
    }
  }
}

// The same memory has room for as many tokens, whoever shares the model; each device brings up what it has of it.
TEST(TierBytes, EveryTierKeepsWhatDevicesShareOnce) {
  const KvTierSettings tiers{
      .host = Bytes{1e11}, .disk = Bytes{2e11}, .peer = Bytes{3e11}, .store = Bytes{4e11}};
  const auto below = [&](const ModelSpec& model, std::int64_t tp) {
    Scenario scenario = toys::scenario();
    scenario.model = model;
    scenario.parallel.tp = tp;
    Deployed deployed{.spec = &scenario,
                      .fabric = fabric_of({}, scenario.device),
                      .shard = shard_of(scenario.model, scenario.parallel, scenario.quant)};
    const StepContext context{scenario.device, deployed.fabric, deployed.shard, scenario.host};
    PoolSetup pool{.settings = scenario.serving, .context = context};
    add_tiers(tiers, set_state_aside({.tokens = 1e6, .context = 1000}, deployed), pool);
    return pool.tiers;
  };
  for (const ModelSpec& model : {toys::latent(), toys::model()}) {
    const TierSetups one = below(model, 1), four = below(model, 4);
    for (std::size_t i = 0; i < kTiers; ++i) EXPECT_EQ(one[i].blocks, four[i].blocks) << i;
    const std::size_t host = std::size_t(TierName::host), disk = std::size_t(TierName::disk);
    EXPECT_NEAR(four[host].seconds_per_token / one[host].seconds_per_token,
                model.is_mla() ? 1 : 0.25, 1e-9);
    EXPECT_NEAR(four[disk].seconds_per_token, one[disk].seconds_per_token, 1e-15);
  }
}

TEST(PeerMemory, IsThatOfTheOtherDevicesOfANode) {
  const auto reason = [](std::int64_t tp, double bytes, std::int64_t node) {
    Scenario scenario = coming_back(toys::model());
    scenario.parallel.tp = tp;
    scenario.cluster.devices_per_node = node;
    scenario.serving.tiers.peer = Bytes{bytes};
    return evaluate(scenario).reason;
  };
  EXPECT_EQ(reason(4, 400e9, 8), "");  // four of 100 GB
  EXPECT_EQ(reason(4, 401e9, 8),
            "serving.tiers.peer is 401.00 GB, and the 4 other devices of a replica's nodes have "
            "400.00 GB");
  EXPECT_EQ(reason(8, 1e9, 8),
            "serving.tiers.peer is 1.00 GB, and the 0 other devices of a replica's nodes have "
            "0.00 GB");
  EXPECT_EQ(reason(8, 400e9, 0), "");  // nobody says how many devices there are
}

}  // namespace
}  // namespace engine

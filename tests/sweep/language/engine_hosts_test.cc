// Whoever names an engine, or a training library, and no host has the host that goes with it.
#include <gtest/gtest.h>

#include "tests/sweep/sweep_fixture.h"

namespace sweep {
namespace {

using Names = std::vector<std::string>;

// Of all points, in their order.
Names hosts_of(const std::string& text) {
  const auto spec =
      read_sweep_text(text, "hosts.yaml", Library({paths::specs()}), InertAxes::allowed);
  if (!spec) {
    ADD_FAILURE() << engine::to_text(spec.mistakes());
    return {};
  }
  Names names;
  for (const engine::Scenario& scenario : admitted(*spec)) names.push_back(scenario.host.name);
  return names;
}

TEST(EngineHosts, GoWithTheirEngines) {
  const std::string start = "base: {device: h100-sxm, model: llama-3.1-8b, ";
  EXPECT_EQ(hosts_of(start + "serving: sglang}\n"), Names{"sglang"});
  EXPECT_EQ(hosts_of(start + "serving: {from: vllm-v1, replicas: 1}}\n"), Names{"vllm-v1"});
  EXPECT_EQ(hosts_of(start + "step: {batch: 2}}\naxes: [serving: [vllm-v1, sglang]]\n"),
            (Names{"vllm-v1", "sglang"}));
  EXPECT_EQ(
      hosts_of(start + "serving: vllm-v1}\naxes:\n  - concat:\n"
                       "      - {name: as said, axes: [step.batch: [1]]}\n"
                       "      - {name: other, base: {serving: sglang}, axes: [step.batch: [1]]}\n"),
      (Names{"vllm-v1", "sglang"}));
}

TEST(EngineHosts, CountOnlyWhereNoHostIsNamed) {
  const std::string start = "base: {device: h100-sxm, model: llama-3.1-8b, serving: sglang, ";
  const std::string named = engine::HostSettings{}.name;
  EXPECT_EQ(hosts_of(start + "host: none}\n"), Names{"none"});
  EXPECT_EQ(hosts_of(start + "host: {from: none, launch_cost: 5 us}}\n"), Names{"none"});
  EXPECT_EQ(hosts_of(start + "step: {batch: 2}}\naxes: [host: [none]]\n"), Names{"none"});
  // Another deployment's is its own matter; training has no engine.
  EXPECT_EQ(hosts_of(start + "task: serve, load: {rate: 1 req/s}, prefill: {host: none}}\n"),
            Names{"sglang"});
  EXPECT_EQ(hosts_of(start + "task: train}\n"), Names{named});
  EXPECT_EQ(hosts_of(start + "train: {from: megatron}}\naxes: [task: [step, train]]\n"),
            (Names{named, named}));
}

// Memory of the host that keeps KV is no CPU side.
TEST(EngineHosts, AreNotWhatKvLiesIn) {
  const std::string start = "base: {device: h100-sxm, model: llama-3.1-8b, task: serve, ";
  for (const char* tiers :
       {"serving: {from: sglang, tiers: {host: 10 GB}}}\n",
        "serving: sglang, serving.tiers: {host: 10 GB}}\n",
        "serving: sglang}\naxes: [serving.tiers.host: [10 GB]]\n",
        "serving: sglang}\naxes: [{zip: {serving.tiers.host: [10 GB], load.rate: [1 req/s]}}]\n",
        "serving: sglang, prefill: {serving: {tiers: {host: 10 GB}}}}\n"}) {
    EXPECT_EQ(hosts_of(start + tiers), Names{"sglang"}) << tiers;
  }
}

// Who states one field of the CPU side still means the engine's for all others.
TEST(EngineHosts, HoldTheFieldsThatAreStatedOfThem) {
  const std::string start = "base: {device: h100-sxm, model: llama-3.1-8b, serving: tensorrt-llm, ";
  const auto scenarios = [](const std::string& text) {
    const Library library({paths::specs()});
    auto spec = read_sweep_text(text, paths::specs("hosts.yaml"), library);
    EXPECT_TRUE(spec) << engine::to_text(spec.mistakes());
    return spec ? admitted(*spec) : std::vector<engine::Scenario>();
  };
  const engine::Scenario plain = scenarios(start + "step: {batch: 2}}\n").at(0);
  ASSERT_GT(plain.host.layer_cost.value, 0);  // which no other host has
  for (const char* said :
       {"host: {mode: eager}}\n", "host.mode: eager}\n",
        "step: {batch: 2}}\naxes: [host.mode: [eager]]\n",
        "step: {batch: 2}}\naxes: [concat: [{name: a, base: {host.mode: eager}}]]\n",
        "host.mode: graph}\naxes: [concat: [{name: a, base: {host: {mode: eager}, "
        "serving: tensorrt-llm}}]]\n",
        "host.mode: eager}\naxes: [concat: [{name: a, base: {host: {high: 2}, "
        "serving: tensorrt-llm}}]]\n"}) {
    const auto found = scenarios(start + said);
    ASSERT_EQ(found.size(), 1u) << said;
    EXPECT_EQ(found[0].host.name, "tensorrt-llm") << said;
    EXPECT_EQ(found[0].host.mode, engine::HostMode::eager) << said;
    EXPECT_EQ(found[0].host.layer_cost.value, plain.host.layer_cost.value) << said;
    EXPECT_EQ(found[0].host.largest_graph, plain.host.largest_graph) << said;
  }
  // Beside engines on an axis an axis of its own holds with each of them.
  const auto each = scenarios(
      "base: {device: h100-sxm, model: llama-3.1-8b}\n"
      "axes: [host.mode: [eager], serving: [vllm-v1, tensorrt-llm]]\n");
  ASSERT_EQ(each.size(), 2u);
  EXPECT_EQ(each[1].host.name, "tensorrt-llm");
  EXPECT_EQ(each[1].host.mode, engine::HostMode::eager);
  EXPECT_EQ(each[1].host.layer_cost.value, plain.host.layer_cost.value);
}

TEST(EngineHosts, LabelledOnesAndThoseMadeFromOthersHaveThem) {
  const std::string start = "base: {device: h100-sxm, model: llama-3.1-8b}\naxes:\n";
  EXPECT_EQ(hosts_of(start + "  - serving: [{value: sglang, label: a}, {from: vllm-v1}]\n"),
            (Names{"sglang", "vllm-v1"}));
  for (const char* zip : {"{serving: [vllm-v1, sglang], step.batch: [1, 2]}",
                          "[serving: [vllm-v1, sglang], step.batch: [1, 2]]"}) {
    EXPECT_EQ(hosts_of(start + "  - zip: " + zip + "\n"), (Names{"vllm-v1", "sglang"}));
  }
  // Somebody's own settings have none, so that neither has.
  const std::string none = engine::HostSettings{}.name;
  EXPECT_EQ(hosts_of(start + "  - serving: [sglang, {policy: sarathi}]\n"), (Names{none, none}));
}

TEST(EngineHosts, EveryEngineAndTrainingLibraryHasOne) {
  const Library library({paths::specs()});
  const std::string start = "base: {device: h100-sxm, model: llama-3.1-8b, ";
  for (const std::string& engine : library.names("serving")) {
    EXPECT_EQ(hosts_of(start + "serving: " + engine + "}\n"), Names{engine});
  }
  for (const std::string& made : library.names("training")) {
    const Names hosts = hosts_of(start + "task: train, train: {from: " + made + "}}\n");
    ASSERT_EQ(hosts.size(), 1u);
    EXPECT_TRUE(library.find("hosts", hosts[0])) << made;
  }
}

}  // namespace
}  // namespace sweep

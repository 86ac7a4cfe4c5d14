// Whoever names an engine, or a training library, and says nothing of hosts has the host that goes with it.
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

TEST(EngineHosts, CountOnlyWhereNothingIsSaidOfHosts) {
  const std::string start = "base: {device: h100-sxm, model: llama-3.1-8b, serving: sglang, ";
  const std::string named = engine::HostSettings{}.name;
  EXPECT_EQ(hosts_of(start + "host: none}\n"), Names{"none"});
  EXPECT_EQ(hosts_of(start + "host: {launch_cost: 5 us}}\n"), Names{named});
  EXPECT_EQ(hosts_of(start + "host.launch_cost: 5 us}\n"), Names{named});
  EXPECT_EQ(hosts_of(start + "step: {batch: 2}}\naxes: [host.launch_cost: [5 us]]\n"),
            Names{named});
  // Another deployment's is its own matter; training has no engine.
  EXPECT_EQ(hosts_of(start + "task: serve, load: {rate: 1 req/s}, prefill: {host: none}}\n"),
            Names{"sglang"});
  EXPECT_EQ(hosts_of(start + "task: train}\n"), Names{named});
  EXPECT_EQ(hosts_of(start + "train: {from: megatron}}\naxes: [task: [step, train]]\n"),
            (Names{named, named}));
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

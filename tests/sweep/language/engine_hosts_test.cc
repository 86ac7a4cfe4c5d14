// Whoever names an engine, or a training library, and no host has the host that goes with it.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/sweep/sweep_fixture.h"

namespace sweep {
namespace {

using Names = std::vector<std::string>;

std::vector<engine::Scenario> points_of(const std::string& text) {
  const auto spec =
      read_sweep_text(text, "hosts.yaml", Library({paths::specs()}), InertAxes::allowed);
  if (!spec) {
    ADD_FAILURE() << text << engine::to_text(spec.mistakes());
    return {};
  }
  // Once its names are looked up it says the same.
  const auto again = read_sweep_text(spec->resolved, "resolved.yaml", Library({paths::specs()}),
                                     InertAxes::allowed);
  if (!again) {
    ADD_FAILURE() << spec->resolved << engine::to_text(again.mistakes());
    return {};
  }
  const auto points = admitted(*spec);
  const auto resolved = admitted(*again);
  EXPECT_EQ(points.size(), resolved.size());
  for (std::size_t i = 0; i < std::min(points.size(), resolved.size()); ++i) {
    EXPECT_EQ(points[i].host, resolved[i].host) << text;
  }
  return points;
}

// Of all points, in their order.
Names hosts_of(const std::string& text) {
  Names names;
  for (const engine::Scenario& scenario : points_of(text)) names.push_back(scenario.host.name);
  return names;
}

// Their names, and what a launch costs in microseconds.
Names launches_of(const std::string& text) {
  Names names;
  for (const engine::Scenario& scenario : points_of(text)) {
    names.push_back(scenario.host.name + " " +
                    std::to_string(std::lround(scenario.host.launch_cost.value * 1e6)));
  }
  return names;
}

// Of another deployment; "-" where there is none.
Names hosts_of(engine::Role engine::Scenario::*role, const std::string& text) {
  Names names;
  for (const engine::Scenario& scenario : points_of(text)) {
    const engine::Role& other = scenario.*role;
    names.push_back(other.present ? other.deployment.host.name : "-");
  }
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

TEST(EngineHosts, CountOnlyWhereNoneIsNamed) {
  const std::string start = "base: {device: h100-sxm, model: llama-3.1-8b, serving: sglang, ";
  const std::string named = engine::HostSettings{}.name;
  EXPECT_EQ(hosts_of(start + "host: none}\n"), Names{"none"});
  EXPECT_EQ(hosts_of(start + "host: {from: {launch_cost: 5 us}}}\n"), Names{named});
  EXPECT_EQ(hosts_of(start + "step: {batch: 2}}\naxes: [host: [none, vllm-v1]]\n"),
            (Names{"none", "vllm-v1"}));
  // Training has no engine.
  EXPECT_EQ(hosts_of(start + "task: train}\n"), Names{named});
}

// Some points train and others do not: each has the host of what it runs.
TEST(EngineHosts, GoWithTheTask) {
  const std::string start = "base: {device: h100-sxm, model: llama-3.1-8b, ";
  const std::string round = engine::HostSettings{}.name;
  const std::string both = "train: {from: megatron}, serving: vllm-v1";
  EXPECT_EQ(hosts_of(start + both + "}\naxes: [task: [serve, train]]\n"),
            (Names{"vllm-v1", "megatron"}));
  EXPECT_EQ(hosts_of(start + both + ", task: train}\naxes: [task: [step, train, request]]\n"),
            (Names{"vllm-v1", "megatron", "vllm-v1"}));
  EXPECT_EQ(
      hosts_of(start + "serving: {from: sglang, replicas: 2}}\naxes: [task: [serve, train]]\n"),
      (Names{"sglang", round}));
  EXPECT_EQ(hosts_of(start + "train: {from: megatron}}\naxes: [task: [step, train]]\n"),
            (Names{round, "megatron"}));
  EXPECT_EQ(
      launches_of(start + both + ", host: {launch_cost: 5 us}}\naxes: [task: [serve, train]]\n"),
      (Names{"vllm-v1 5", "megatron 5"}));
  EXPECT_EQ(hosts_of(start + "seed: 1}\naxes:\n  - concat:\n"
                             "      - {name: a, base: {task: train, train: {from: megatron}}}\n"
                             "      - {name: b, base: {task: serve, serving: vllm-v1}}\n"),
            (Names{"megatron", "vllm-v1"}));
  // Other deployments are as always, and one that is named counts everywhere.
  EXPECT_EQ(hosts_of(&engine::Scenario::prefill,
                     start + both +
                         ", prefill: {serving: sglang}}\naxes: [task: [serve, request, train]]\n"),
            (Names{"sglang", "sglang", "sglang"}));
  EXPECT_EQ(hosts_of(start + both + ", host: none}\naxes: [task: [serve, train]]\n"),
            (Names{"none", "none"}));
  // A task does not say which of two engines it has.
  EXPECT_EQ(
      hosts_of(start + "task: serve}\naxes: [task: [serve, train], serving: [vllm-v1, sglang]]\n"),
      (Names{round, round, round, round}));
}

TEST(EngineHosts, LabelledOnesAndThoseMadeFromOthersHaveThem) {
  const std::string start = "base: {device: h100-sxm, model: llama-3.1-8b}\naxes:\n";
  EXPECT_EQ(hosts_of(start + "  - serving: [{value: sglang, label: a}, {from: vllm-v1}]\n"),
            (Names{"sglang", "vllm-v1"}));
  for (const char* zip : {"{serving: [vllm-v1, sglang], step.batch: [1, 2]}",
                          "[serving: [vllm-v1, sglang], step.batch: [1, 2]]"}) {
    EXPECT_EQ(hosts_of(start + "  - zip: " + zip + "\n"), (Names{"vllm-v1", "sglang"}));
  }
  // What differs from the base in some settings has its host; whole settings of somebody's own have round figures.
  const std::string none = engine::HostSettings{}.name;
  EXPECT_EQ(hosts_of(start + "  - serving: [sglang, {policy: sarathi}]\n"),
            (Names{"sglang", none}));
  EXPECT_EQ(hosts_of("base: {device: h100-sxm, model: llama-3.1-8b, serving: vllm-v1}\n"
                     "axes: [serving: [sglang, {policy: sarathi}, {from: {policy: sarathi}}]]\n"),
            (Names{"sglang", "vllm-v1", none}));
}

// Whatever form an axis has, and whatever group it is in.
TEST(EngineHosts, GoWithThemWhereverTheyAreListed) {
  const std::string start = "base: {device: h100-sxm, model: llama-3.1-8b}\naxes:\n";
  const Names both{"vllm-v1", "sglang"};
  EXPECT_EQ(hosts_of(start + "  - serving: {values: [vllm-v1, sglang]}\n"), both);
  EXPECT_EQ(
      hosts_of(start + "  - zip: {serving: {values: [vllm-v1, sglang]}, step.batch: [1, 2]}\n"),
      both);
  EXPECT_EQ(hosts_of(start + "  - product: [serving: [vllm-v1, sglang]]\n"), both);
  EXPECT_EQ(hosts_of(start + "  - zip:\n      - product: [serving: [vllm-v1, sglang]]\n"
                             "      - step.batch: [1, 2]\n"),
            both);
  EXPECT_EQ(hosts_of(&engine::Scenario::prefill,
                     start + "  - task: [request]\n"
                             "  - prefill: {values: [{serving: vllm-v1}, {serving: sglang}]}\n"),
            both);
  for (const char* method : {"random", "latin_hypercube", "sobol"}) {
    const auto points =
        points_of(start + "  - sample: {" + method +
                  ": 16, of: {step.batch: [1, 64], serving: [vllm-v1, sglang, tensorrt-llm], "
                  "step.context: [100, 900]}}\n");
    ASSERT_EQ(points.size(), 16u);
    for (const auto& point : points) EXPECT_EQ(point.host.name, point.serving.name) << method;
  }
}

TEST(EngineHosts, AreNamedByTheirSection) {
  const auto spec = read_sweep_text("axes: [serving.from: [vllm-v1, sglang]]\n", "hosts.yaml",
                                    Library({paths::specs()}), InertAxes::allowed);
  ASSERT_FALSE(spec);
  EXPECT_EQ(engine::to_text(spec.mistakes()),
            "hosts.yaml:1:8: error: unknown path 'serving.from'\n"
            "  hint: a spec is named by its section: 'serving: NAME', or on an axis 'serving: "
            "[NAME, NAME]'\n");
}

TEST(EngineHosts, GoWithThoseThatHoldOnlyAtTimes) {
  const std::string axes = "axes:\n  - step.batch: [1, 2]\n  - serving: ";
  const std::string start = "base: {device: h100-sxm, model: llama-3.1-8b}\n" + axes;
  const std::string none = engine::HostSettings{}.name;
  EXPECT_EQ(hosts_of(start + "[vllm-v1, {value: sglang, when: step.batch == 1}]\n"),
            (Names{"vllm-v1", "sglang", "vllm-v1"}));
  // Where the condition of an axis does not hold, the base counts, with its host and the fields of it.
  const std::string others =
      "base: {device: h100-sxm, model: llama-3.1-8b, serving: vllm-v0, host.launch_cost: 5 us}\n" +
      axes;
  for (const char* form : {"{values: [vllm-v1, sglang], when: step.batch == 1}\n",
                           "[vllm-v1, sglang]\n    when: step.batch == 1\n"}) {
    EXPECT_EQ(hosts_of(start + form), (Names{"vllm-v1", "sglang", none})) << form;
    EXPECT_EQ(launches_of(others + form), (Names{"vllm-v1 5", "sglang 5", "vllm-v0 5"})) << form;
  }
}

TEST(EngineHosts, HaveTheFieldsThatASweepStates) {
  const std::string start = "base: {device: h100-sxm, model: llama-3.1-8b, serving: sglang, ";
  EXPECT_EQ(launches_of(start + "host: {launch_cost: 5 us}}\n"), Names{"sglang 5"});
  EXPECT_EQ(launches_of(start + "host.launch_cost: 5 us}\n"), Names{"sglang 5"});
  EXPECT_EQ(launches_of(start + "step: {batch: 2}}\naxes: [host.launch_cost: [5 us, 7 us]]\n"),
            (Names{"sglang 5", "sglang 7"}));
  const auto plain = points_of(start + "step: {batch: 2}}\n");
  const auto doubled =
      points_of(start + "step: {batch: 2}}\nderive: {host.launch_cost: host.launch_cost * 2}\n");
  ASSERT_EQ(doubled.size(), 1u);
  EXPECT_EQ(doubled[0].host.name, "sglang");
  EXPECT_EQ(doubled[0].host.launch_cost, plain[0].host.launch_cost * 2);
  EXPECT_EQ(launches_of(start + "host: {launch_cost: 5 us}}\naxes: [serving: [vllm-v1, vllm-v0, "
                                "{policy: sarathi}]]\n"),
            (Names{"vllm-v1 5", "vllm-v0 5", "sglang 5"}));
  EXPECT_EQ(launches_of(start + "host: {launch_cost: 5 us}}\naxes:\n  - concat:\n"
                                "      - {name: a}\n"
                                "      - {name: b, base: {serving: vllm-v1}}\n"
                                "      - {name: c, base: {host.launch_cost: 9 us}}\n"
                                "      - {name: d, axes: [serving: [vllm-v1, vllm-v0]]}\n"),
            (Names{"sglang 5", "vllm-v1 5", "sglang 9", "vllm-v1 5", "vllm-v0 5"}));
}

// Memory of the host that keeps KV is no CPU side.
TEST(EngineHosts, AreNotWhatKvLiesIn) {
  const std::string start = "base: {device: h100-sxm, model: llama-3.1-8b, task: serve, ";
  for (const char* tiers :
       {"serving: {from: sglang, tiers: {host: 10 GB}}}\n",
        "serving: sglang, serving.tiers: {host: 10 GB}}\n",
        "serving: sglang}\naxes: [serving.tiers.host: [10 GB]]\n",
        "serving: sglang}\naxes: [{zip: {serving.tiers.host: [10 GB], load.rate: [1 req/s]}}]\n",
        "serving: sglang}\naxes: [serving.tiers: [{host: 10 GB}]]\n",
        "serving: sglang, prefill: {serving: {tiers: {host: 10 GB}}}}\n"}) {
    EXPECT_EQ(hosts_of(start + tiers), Names{"sglang"}) << tiers;
  }
  EXPECT_EQ(hosts_of(&engine::Scenario::prefill,
                     start + "serving: vllm-v1, prefill: {serving: {from: sglang, tiers: {host: "
                             "10 GB}}}}\n"),
            Names{"sglang"});
  // Another deployment's own is named where that is.
  EXPECT_EQ(
      hosts_of(&engine::Scenario::prefill, start + "serving: sglang, prefill: {host: none}}\n"),
      Names{"none"});
}

// However a sweep says it, all other fields are the engine's.
TEST(EngineHosts, KeepWhatNobodySaysOfThem) {
  const std::string start = "base: {device: h100-sxm, model: llama-3.1-8b, serving: tensorrt-llm, ";
  const auto plain = points_of(start + "step: {batch: 2}}\n");
  ASSERT_GT(plain.at(0).host.layer_cost.value, 0);  // which no other host has
  for (const char* said :
       {"host: {mode: eager}}\n", "host.mode: eager}\n",
        "step: {batch: 2}}\naxes: [host.mode: [eager]]\n",
        "step: {batch: 2}}\naxes: [concat: [{name: a, base: {host.mode: eager}}]]\n",
        "host.mode: graph}\naxes: [concat: [{name: a, base: {host: {mode: eager}, "
        "serving: tensorrt-llm}}]]\n",
        "host.mode: eager}\naxes: [concat: [{name: a, base: {host: {high: 2}, "
        "serving: tensorrt-llm}}]]\n"}) {
    const auto found = points_of(start + said);
    ASSERT_EQ(found.size(), 1u) << said;
    EXPECT_EQ(found[0].host.name, "tensorrt-llm") << said;
    EXPECT_EQ(found[0].host.mode, engine::HostMode::eager) << said;
    EXPECT_EQ(found[0].host.layer_cost, plain[0].host.layer_cost) << said;
    EXPECT_EQ(found[0].host.largest_graph, plain[0].host.largest_graph) << said;
  }
}

TEST(EngineHosts, OfOtherDeploymentsGoWithTheirOwnEngines) {
  const std::string start =
      "base: {device: h100-sxm, model: llama-3.1-8b, task: serve, load: {rate: 1 req/s}, serving: "
      "vllm-v1, ";
  const auto readers = &engine::Scenario::prefill;
  EXPECT_EQ(hosts_of(readers, start + "prefill: {}}\n"), Names{"vllm-v1"});
  EXPECT_EQ(hosts_of(readers, start + "prefill: {serving: sglang}}\n"), Names{"sglang"});
  EXPECT_EQ(hosts_of(readers, start + "prefill.serving: {from: sglang, replicas: 2}}\n"),
            Names{"sglang"});
  EXPECT_EQ(hosts_of(start + "prefill: {serving: sglang}}\n"), Names{"vllm-v1"});
  EXPECT_EQ(hosts_of(readers, start + "prefill: {serving: sglang, host: none}}\n"), Names{"none"});
  EXPECT_EQ(hosts_of(start + "prefill: {serving: sglang, host: none}}\n"), Names{"vllm-v1"});
  EXPECT_EQ(hosts_of(readers, start + "prefill: {}}\naxes: [prefill.serving: [sglang, vllm-v0]]\n"),
            (Names{"sglang", "vllm-v0"}));
  EXPECT_EQ(hosts_of(readers, start + "step: {batch: 2}}\naxes: [prefill: [none, {}, {serving: "
                                      "sglang}, {value: {serving: vllm-v0}, label: old}]]\n"),
            (Names{"-", "vllm-v1", "sglang", "vllm-v0"}));
  // A host that is named is that of every deployment which does not name another.
  EXPECT_EQ(hosts_of(readers, start + "host: none, prefill: {serving: sglang}}\n"), Names{"none"});
}

TEST(EngineHosts, OfTrainingDoNotWriteItsSamples) {
  const std::string start =
      "base: {device: h100-sxm, model: llama-3.1-8b, task: train, train: {from: megatron, rollout: "
      "{prompts: 8}}";
  const std::string round = engine::HostSettings{}.name;
  const auto writers = &engine::Scenario::rollout;
  EXPECT_EQ(hosts_of(start + "}\n"), Names{"megatron"});
  for (const char* said :
       {"", ", rollout: {}", ", host: megatron", ", rollout: {serving: {prefix_caching: true}}"}) {
    EXPECT_EQ(hosts_of(writers, start + said + "}\n"), Names{round}) << said;
  }
  for (const char* said : {", serving: sglang", ", rollout: {serving: sglang}",
                           ", host: none, rollout.serving: sglang",
                           ", serving: sglang, rollout: {serving: {prefix_caching: true}}",
                           ", serving: vllm-v1, rollout: {serving: {from: sglang, replicas: 2}}"}) {
    EXPECT_EQ(hosts_of(writers, start + said + "}\n"), Names{"sglang"}) << said;
  }
  EXPECT_EQ(hosts_of(writers, start + ", rollout: {host: none}}\n"), Names{"none"});
  EXPECT_EQ(hosts_of(writers, start + "}\naxes: [rollout.serving: [vllm-v1, sglang]]\n"),
            (Names{"vllm-v1", "sglang"}));
  EXPECT_EQ(hosts_of(writers, start + "}\naxes: [rollout: [{}, {serving: sglang}]]\n"),
            (Names{round, "sglang"}));
  EXPECT_EQ(hosts_of(writers,
                     "base: {device: h100-sxm, model: llama-3.1-8b, task: train, train: "
                     "{from: megatron}}\n"),
            Names{"-"});
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

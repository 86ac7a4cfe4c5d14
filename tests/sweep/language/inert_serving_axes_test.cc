// Axes that change nothing because of the load that is served, or of where its deployments stand.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/support/temporary_folder.h"
#include "tests/sweep/inert_axes.h"

namespace sweep {
namespace {

using inert::axis, inert::base, inert::said_of;

TEST(InertServingAxes, AdaptersOfANodeThatHoldsBothDeployments) {
  const auto with = [](const std::string& fields) {
    return base(
        "task: serve, prefill: {}, parallel: {tp: 2}, cluster: {devices_per_node: 4, "
        "scale_up: {topology: fabric, bandwidth: 9 GB/s, latency: 1 us, devices: 4}, "
        "scale_out: {topology: fabric, bandwidth: 1 GB/s, latency: 1 us, devices: 64}}" +
        fields);
  };
  const std::string rails = axis("transfer.rails: [1, 2]");
  const auto inert = [&](const std::string& text) {
    return said_of(text).find(
               "'transfer.rails' changes nothing here: it counts only where KV "
               "caches leave a node") != std::string::npos;
  };
  EXPECT_TRUE(inert(with("") + rails));
  EXPECT_EQ(said_of(with(", serving: {replicas: 2}") + rails), "");
  EXPECT_EQ(said_of(with("") + rails + "  - prefill.serving.replicas: [1, 2]\n"), "");
  EXPECT_TRUE(
      inert(with(", serving: {replicas: 2}, transfer: {link: {bandwidth: 1 GB/s}}") + rails));
  const std::string sharing = axis("transfer.contention: [transfers, collectives]");
  EXPECT_EQ(said_of(with("") + sharing), "");
  EXPECT_NE(said_of(with(", transfer: {link: {bandwidth: 1 GB/s}}") + sharing), "");
  const auto noted = read_sweep_text(with(", transfer: {rails: 2}"), "toy.yaml", toy_library());
  ASSERT_TRUE(noted.ok());
  EXPECT_EQ(noted->notes.size(), 1u);
}

// A trace that is replayed has tenants, priorities and prefixes of its own; and a timetable has times of its own.
TEST(InertServingAxes, WhatIsRecordedIsNotStatedAgain) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.path() / "trace.csv";
  std::ofstream(path) << "arrival_s,prompt_tokens,output_tokens,tenant\n0,10,2,a\n1,10,2,b\n";
  const std::string replayed = base(
      "task: serve, output.requests: true, serving.prefix_caching: true, load: {arrivals: trace, "
      "trace: " +
      path + "}");
  for (const std::string field : {"load.tenants", "load.priorities", "load.shared_prefix"}) {
    EXPECT_EQ(said_of(replayed + axis(field + ": [1, 3]")),
              "toy.yaml:3:5: error: '" + field +
                  "' changes nothing here: it counts only where load.arrivals is not trace\n"
                  "  hint: remove the axis, or change what it depends on\n");
  }
  EXPECT_EQ(said_of(replayed + axis("serving.ordering: [fcfs, fair_share]")), "");
  EXPECT_EQ(said_of(base("task: serve, serving: {replicas: 2, scaling: {policy: scheduled, "
                         "schedule: '0:1, 9:2'}}") +
                    axis("serving.scaling.interval: [1 s, 2 s]")),
            "toy.yaml:3:5: error: 'serving.scaling.interval' changes nothing here: it counts only "
            "where serving.scaling.policy is reactive or predictive\n"
            "  hint: remove the axis, or change what it depends on\n");
}

// Orders of a queue whose requests are alike, tiers for prompts that nobody repeats, a latency without a link.
TEST(InertServingAxes, WhatALoadGivesNoReasonForIsRefused) {
  const std::string served =
      base("task: serve, serving.prefix_caching: true, prefill: {}, load: {rate: 1 req/s}");
  const std::string hint = "\n  hint: remove it, or change what it depends on\n";
  const std::string orders = "toy.yaml:3:5: error: 'serving.ordering: ";
  EXPECT_EQ(said_of(served + axis("serving.ordering: [fcfs, priority]")),
            orders +
                "priority' is fcfs here: it differs only where load.priorities is above 1, or "
                "there are load.classes or load.trace" +
                hint);
  EXPECT_EQ(said_of(served + axis("serving.ordering: [fcfs, fair_share]")),
            orders +
                "fair_share' is fcfs here: it differs only where load.tenants is above 1, or "
                "load.arrivals is trace" +
                hint);
  const std::string prefixes = axis("serving.ordering: [fcfs, longest_prefix]");
  const std::string common =
      "prompts have something in common (load.turns or load.samples above 1, load.shared_prefix or "
      "load.trace)";
  EXPECT_EQ(said_of(served + prefixes),
            orders + "longest_prefix' is fcfs here: it differs only where " + common + hint);
  EXPECT_EQ(
      said_of(base("task: serve, load: {rate: 1 req/s, shared_prefix: 10}") + prefixes),
      orders +
          "longest_prefix' is fcfs here: it differs only where serving.prefix_caching is true" +
          hint);
  const std::string tiers = axis("serving.tiers.host: [none, 1 GB]");
  EXPECT_EQ(said_of(served + tiers),
            "toy.yaml:3:5: error: 'serving.tiers.host' changes nothing here: it "
            "counts only where " +
                common + "\n  hint: remove the axis, or change what it depends on\n");
  EXPECT_EQ(
      said_of(served + axis("transfer.link.latency: [1 us, 1 ms]")),
      "toy.yaml:3:5: error: 'transfer.link.latency' changes nothing here: it counts only where "
      "transfer.link has a bandwidth (else KV caches take the links of the deployments)"
      "\n  hint: remove the axis, or change what it depends on\n");
  // With a reason they are themselves.
  for (const char* reason :
       {"load.turns: [1, 2]", "load.shared_prefix: [0, 10]", "load.samples: [1, 2]"}) {
    for (const std::string& what : {prefixes, tiers}) {
      EXPECT_EQ(said_of(served + what + "  - " + reason + "\n"), "") << reason;
    }
  }
  const std::string both = axis("serving.ordering: [fcfs, priority, fair_share]");
  EXPECT_EQ(said_of(served + both + "  - load.priorities: [2]\n  - load.tenants: [3]\n"), "");
  EXPECT_EQ(said_of(served + axis("serving.ordering: [fcfs, priority]") +
                    "  - load.classes.low.share: [0, 0.5]\n"),
            "");
}

}  // namespace
}  // namespace sweep

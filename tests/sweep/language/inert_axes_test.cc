// An axis that changes nothing is a mistake, unless some point of the sweep reads it.
#include <gtest/gtest.h>

#include <string>

#include "tests/sweep/inert_axes.h"

namespace sweep {
namespace {

using inert::axis, inert::base, inert::said_of;

TEST(InertAxes, AFieldOfAnotherTaskIsAMistakeWithWhatToWriteInstead) {
  EXPECT_EQ(
      said_of(base("task: serve") + axis("step.batch: [1, 2, 4]")),
      "toy.yaml:3:5: error: 'step.batch' changes nothing here: it counts only where task is step\n"
      "  hint: under task serve that is 'serving.max_num_seqs'; or remove the axis\n");
  EXPECT_EQ(
      said_of(base("task: step") + axis("load.rate: [1 req/s, 2 req/s]")),
      "toy.yaml:3:5: error: 'load.rate' changes nothing here: it counts only where task is serve\n"
      "  hint: under task step that is 'step.batch'; or remove the axis\n");
}

// What replicas share out counts where there are several, what fills the fullest device where experts are on several.
TEST(InertAxes, WhatOneReplicaCannotShareOut) {
  const auto inert = [](const std::string& fields, const std::string& text) {
    return said_of("base: {task: train, device: toy, model: " + fields + "}\n" + axis(text))
               .find("changes nothing here") != std::string::npos;
  };
  const std::string zero = "train.zero: [0, 3]", skew = "train.routing_skew: [0, 1]";
  EXPECT_TRUE(inert("tiny, parallel: {tp: 2}", zero));
  EXPECT_FALSE(inert("tiny, parallel: {dp: 2}", zero));
  EXPECT_FALSE(inert("tiny, parallel: {cp: 2}", zero));
  EXPECT_FALSE(inert("tiny, parallel: {pp: 2}, train: {schedule: dualpipe}", zero));
  const std::string mixture = "{from: tiny, moe: {experts: 8}}";
  const std::string apart = ", parallel: {ep: 2, dp: 2}";
  EXPECT_TRUE(inert(mixture, skew));
  EXPECT_FALSE(inert(mixture + apart, skew));
}

// Samples are made by the main deployment's engine where the role does not state another.
TEST(InertAxes, AnEngineThatMakesSamplesCounts) {
  const auto inert = [](const std::string& fields, const std::string& text) {
    return said_of(base("task: train, " + fields) + axis(text)).find("changes nothing here") !=
           std::string::npos;
  };
  const std::string alone = "train: {rollout: {prompts: 8}}";
  for (const std::string& samples : {alone, alone + ", rollout: {parallel: {dp: 1}}"}) {
    for (const char* text : {"serving.max_num_seqs: [8, 64]", "serving.sampling: [greedy, sorted]",
                             "serving.memory_utilization: [0.5, 0.9]", "quant.kv: [bf16, fp8]"}) {
      EXPECT_FALSE(inert(samples, text)) << samples << text;
      EXPECT_TRUE(inert("parallel: {dp: 2}", text)) << text;
    }
    EXPECT_TRUE(inert(samples, "host.step_overhead: [1 ms, 2 ms]")) << samples;
    EXPECT_TRUE(inert(samples, "serving.context: [ring, all_gather]")) << samples;
  }
}

TEST(InertAxes, EverySectionOfATaskIsOnlyForThatTask) {
  const std::pair<const char*, const char*> axes[] = {
      {"step", "step.batch: [1, 2]"},
      {"request", "request.prompt: [1, 2]"},
      {"serve", "load.requests: [10, 20]"},
      {"serve", "slo.ttft_p99: [1 s, 2 s]"},
      {"serve", "capacity.slo.ttft_p99: [1 s, 2 s]"},
      {"serve", "output.requests: [true, false]"},
      {"serve", "serving.max_num_seqs: [1, 2]"},
      {"serve", "sample: {random: 3, of: {load.rate: [1 req/s, 9 req/s]}}"},
      {"serve", "zip: {load.rate: [1 req/s, 9 req/s], load.requests: [10, 20]}"},
  };
  for (const auto& [task, text] : axes) {
    for (const std::string other : {"step", "request", "serve"}) {
      const std::string said = said_of(base("task: " + other) + axis(text));
      EXPECT_EQ(said.empty(), other == task) << other << ": " << text << "\n" << said;
    }
  }
}

// Formats that nothing is in.
TEST(InertAxes, ScalesAndScopeCountWhereSomethingIsNarrow) {
  const auto inert = [](const std::string& fields, const std::string& text) {
    return said_of(base(fields) + axis(text)).find("changes nothing here") != std::string::npos;
  };
  EXPECT_TRUE(inert("task: step", "quant.group: [32, 128]"));
  EXPECT_FALSE(inert("task: step, quant: {weights: int4}", "quant.group: [32, 128]"));
  EXPECT_FALSE(inert("task: step", "zip: {quant.weights: [bf16, int4], quant.group: [128, 64]}"));
  EXPECT_TRUE(inert("task: step", "quant.scope: [all, mlps]"));
  EXPECT_FALSE(inert("task: step, quant: {weights: int4}", "quant.scope: [all, mlps]"));
}

// Parts that the model of no point has.
TEST(InertAxes, FieldsOfAPartCountWhereTheModelHasThePart) {
  const auto inert = [](const std::string& model, const std::string& text,
                        const std::string& parallel = "{}") {
    return said_of("base: {task: step, device: toy, model: " + model + ", parallel: " + parallel +
                   "}\n" + axis(text))
               .find("changes nothing here") != std::string::npos;
  };
  const std::string mixture = "{from: tiny, moe: {experts: 8, top_k: 2, intermediate: 8}}";
  for (const char* text :
       {"model.moe.top_k: [1, 2]", "model.moe.skew: [0, 1]", "model.moe.every: [1, 2]"}) {
    EXPECT_TRUE(inert("tiny", text)) << text;
    EXPECT_FALSE(inert(mixture, text)) << text;
  }
  EXPECT_FALSE(inert("tiny", "model.moe.experts: [0, 8]"));
  EXPECT_FALSE(inert("tiny", "zip: {model.moe.experts: [0, 8], model.moe.top_k: [0, 2]}"));
  EXPECT_TRUE(inert("tiny", "model.mla.rope_dim: [32, 64]"));
  EXPECT_TRUE(inert("tiny", "model.scan.heads: [1, 2]"));
  EXPECT_TRUE(inert("tiny", "model.full_attention_every: [2, 4]"));
  EXPECT_FALSE(inert("{from: tiny, window: 64}", "model.full_attention_every: [2, 4]"));
  // Loads of the past decide where second copies go, and nothing else.
  const std::string drift = "model.moe.drift: [0, 0.2]";
  EXPECT_TRUE(inert(mixture, drift, "{tp: 2, ep: 2}"));
  EXPECT_FALSE(inert(mixture, drift, "{tp: 2, ep: 2, redundant_experts: 2}"));
  EXPECT_FALSE(
      inert("{from: tiny, moe: {experts: 9, top_k: 2, intermediate: 8}}", drift, "{tp: 2, ep: 2}"));
}

// A label is no spec, though it may be the name of one.
TEST(InertAxes, ALabelBringsNothingOfTheSpecOfThatName) {
  EXPECT_EQ(said_of("base: {device: toy, model: {name: tiny}}\n"),
            "toy.yaml:1:29: error: 'model.name' is a label and brings nothing of 'tiny'\n"
            "  hint: write 'model: tiny'\n");
  EXPECT_EQ(said_of("base: {device: toy, model: tiny}\naxes: [model.name: [tiny, small]]\n"),
            "toy.yaml:2:8: error: 'model.name' is a label and brings nothing of 'tiny'\n"
            "  hint: write 'model: [tiny, ...]'\n"
            "toy.yaml:2:8: error: 'model.name' is a label and brings nothing of 'small'\n"
            "  hint: write 'model: [small, ...]'\n");
  EXPECT_EQ(said_of("base: {device: toy, model: {from: tiny, name: mine}}\n"), "");
  EXPECT_EQ(said_of("base: {device: toy, model: {layers: 8}}\n"),
            "toy.yaml:1:1: error: the sweep names no model, and what it states has no hidden\n"
            "  hint: add one under 'base:', as in 'model: llama-3.1-70b'\n");
}

// Of two places that say how devices are joined, the cluster's counts.
TEST(InertAxes, LinksOfADeviceCountWhereItsClusterStatesNone) {
  const std::string links = axis("device.scale_up.bandwidth: [1 GB/s, 2 GB/s]");
  EXPECT_EQ(said_of(base("task: step, parallel: {tp: 2}") + links), "");
  EXPECT_EQ(
      said_of(
          base("task: step, parallel: {tp: 2}, cluster: {scale_up: {topology: fabric, bandwidth: "
               "3 GB/s, latency: 1 us}}") +
          links),
      "toy.yaml:3:5: error: 'device.scale_up.bandwidth' changes nothing here: it counts only where "
      "cluster.scale_up.topology is none (this cluster has links of its own in cluster.scale_up)\n"
      "  hint: remove the axis, or change what it depends on\n");
}

TEST(InertAxes, ATaskThatIsItselfAnAxisMakesItsFieldsCount) {
  const std::string both = "  - step.batch: [1, 2]\n  - load.rate: [1 req/s, 2 req/s]\n";
  EXPECT_EQ(said_of(base("task: step") + "axes:\n  - task: [step, serve]\n" + both), "");
  EXPECT_EQ(said_of(base("task: step") +
                    "axes:\n  - concat: [{base: {task: serve}, axes: [{load.rate: [1 req/s, 2 "
                    "req/s]}]}, {axes: [{step.batch: [1, 2]}]}]\n"),
            "");
  EXPECT_EQ(said_of(base("task: step") +
                    "axes:\n  - step.batch: [1, 2]\n  - load.rate: [1 req/s, 2 req/s]\n"
                    "derive: {task: \"step.batch > 1 ? 'serve' : 'step'\"}\n"),
            "");
  // The base's own task counts for nothing where every point has another.
  EXPECT_NE(said_of(base("task: serve") + "axes:\n  - task: [step, request]\n" + both), "");
}

// What no task reads may still decide what others are.
TEST(InertAxes, AFieldThatAFormulaReadsCounts) {
  const std::string prompts =
      base("step: {phase: decode}") + "axes:\n  - step.prompt: [100, 200]\n";
  EXPECT_EQ(said_of(prompts + "derive: {step.context: \"step.prompt + 28\"}\n"), "");
  EXPECT_EQ(said_of(prompts + "  - step.batch: {values: [1, 2], when: step.prompt > 100}\n"), "");
  // By way of another, too.
  EXPECT_EQ(said_of(prompts + "derive: {step.cached: \"step.prompt / 2\", step.context: "
                              "\"2 * step.cached\"}\n"),
            "");
  // But not where nothing follows from it: a requirement only drops points.
  EXPECT_NE(said_of(prompts), "");
  EXPECT_NE(said_of(prompts + "derive: {step.cached: \"step.prompt / 2\"}\n"), "");
  EXPECT_NE(said_of(prompts + "require: [\"step.prompt < 1000\"]\n"), "");
}

TEST(InertAxes, AFieldThatAnotherFieldSwitchesOffIsAMistakeToo) {
  const std::pair<const char*, const char*> cases[] = {
      {"step: {phase: decode}", "step.prompt: [1, 2]"},
      {"step: {phase: prefill}", "step.context: [1, 2]"},
      {"task: serve, load: {arrivals: closed}", "load.rate: [1 req/s, 2 req/s]"},
      {"task: serve", "load.clients: [1, 2]"},
      {"task: serve, capacity: {slo: {ttft_p99: 1 s}}", "load.rate: [1 req/s, 2 req/s]"},
      {"task: serve", "capacity.tolerance: [0.1, 0.2]"},
      {"task: serve", "load.shared_prefix: [100, 200]"},
      {"task: serve", "serving.router: [random, sticky]"},
      {"task: serve", "serving.chunk: [256, 512]"},
  };
  for (const auto& [fields, text] : cases) {
    EXPECT_NE(said_of(base(fields) + axis(text)).find("changes nothing here"), std::string::npos)
        << fields << ": " << text;
  }
}

// A device has fields that never count; they are not why an axis over whole devices does not.
TEST(InertAxes, OfAWholeSpecTheReasonIsThatOfMostOfItsFields) {
  const std::string said = said_of(base("task: train, train: {rollout: {prompts: 8}}") +
                                   axis("rollout.device: [toy, {from: toy, clock: 2 GHz}]"));
  EXPECT_NE(said.find("it counts only where train.rollout.colocated is false"), std::string::npos)
      << said;
}

TEST(InertAxes, LinksOfAClusterThatHasNone) {
  const std::string two = base("task: step, parallel: {tp: 2}");
  for (const char* link : {"cluster.scale_up", "cluster.scale_out"}) {
    const std::string rates = axis(std::string(link) + ".bandwidth: [1 GB/s, 2 GB/s]");
    EXPECT_NE(said_of(two + rates)
                  .find(std::string("it counts only where ") + link +
                        ".topology is not none (by default links are the device's"),
              std::string::npos)
        << said_of(two + rates);
    const std::string stated =
        base("task: step, parallel: {tp: 2}, cluster: {" + std::string(link + 8) +
             ": {topology: fabric, bandwidth: 1 GB/s, latency: 1 us, devices: 8}}");
    EXPECT_EQ(said_of(stated + rates), "");
  }
}

TEST(InertAxes, NothingIsRefusedThatSomePointReads) {
  const std::pair<const char*, const char*> cases[] = {
      {"step: {phase: decode}", "step.prompt: [1, 2]\n  - step.phase: [decode, prefill]"},
      {"task: serve", "load.clients: [1, 2]\n  - load.arrivals: [closed, poisson]"},
      {"task: serve, capacity: {slo: {ttft_p99: 1 s}}",
       "load.rate: [1 req/s, 2 req/s]\n  - capacity.slo.ttft_p99: [none, 2 s]"},
      {"task: serve, parallel: {dp: 2}", "serving.router: [random, sticky]"},
      {"task: serve, serving: {policy: sarathi}", "serving.chunk: [256, 512]"},
      {"task: step", "serving.memory_utilization: [0.8, 0.9]"},
      {"task: step", "host: [{launch_cost: 1 us}, {launch_cost: 2 us}]"},
  };
  for (const auto& [fields, text] : cases) {
    EXPECT_EQ(said_of(base(fields) + axis(text)), "") << fields << ": " << text;
  }
}

// What several fields decide together is known where no axis varies them.
TEST(InertAxes, AttentionKernelsThatTheDeviceHasAlike) {
  const auto on = [](const std::string& architecture) {
    return "base: {device: {from: toy, architecture: " + architecture +
           "}, model: tiny, task: serve}\n";
  };
  const std::string kernels = axis("serving.attention: [planned, flash_attention]");
  for (const char* alike : {"Hopper", "Blackwell", "CDNA 3"}) {
    EXPECT_NE(said_of(on(alike) + kernels).find("it counts only where the device has synchronous"),
              std::string::npos)
        << alike;
    EXPECT_EQ(said_of(on(alike) + kernels + "  - device.architecture: [Hopper, Ampere]\n"), "");
  }
  for (const char* differs : {"Ampere", "Ada", "Blackwell RTX"}) {
    EXPECT_EQ(said_of(on(differs) + kernels), "") << differs;
  }
  // What is stated of both kinds of work takes its place.
  EXPECT_NE(said_of("base: {device: {from: toy, architecture: Ada}, model: tiny, task: serve, "
                    "serving: {mixed_attention: joined, decode_parts: even}}\n" +
                    kernels),
            "");
}

TEST(InertAxes, AValueThatIsAnotherOneIsRefused) {
  const std::string training = base("task: train, parallel: {pp: 2}");
  const std::string schedules = axis("train.schedule: [gpipe, 1f1b, interleaved]");
  EXPECT_EQ(
      said_of(training + schedules),
      "toy.yaml:3:5: error: 'train.schedule: interleaved' is 1f1b here: it differs only where "
      "train.virtual_stages is above 1\n  hint: remove it, or change what it depends on\n");
  EXPECT_EQ(said_of(training + axis("train.schedule: [gpipe, 1f1b]")), "");
  EXPECT_EQ(said_of(training + schedules + "  - train.virtual_stages: [1, 2]\n"), "");
  EXPECT_EQ(said_of(training + schedules + "derive: {train.virtual_stages: \"2\"}\n"), "");
}

}  // namespace
}  // namespace sweep

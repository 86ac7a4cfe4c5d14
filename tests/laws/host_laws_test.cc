// Laws of the host: launching kernels one by one is never faster than replaying them, and what streams tokens to
// clients shows only where there are clients.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "engine/evaluate.h"
#include "engine/host/host_time.h"
#include "tests/support/serving_toys.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

Outcome evaluated(const Scenario& scenario) {
  Outcome outcome = evaluate(scenario, toys::transfer_resources());
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome;
}

// Batches with a graph of just their size, so that both modes do the same work.
TEST(HostLaws, EagerIsNeverFasterAtEqualBatch) {
  for (const char* device : {"h100-sxm", "a100-80gb-sxm", "mi300x", "rtx-4090"}) {
    for (const HostSettings& host : toys::shipped_hosts()) {
      for (const std::int64_t batch : {1, 2, 4, 8, 32, 128, 256}) {
        for (const std::int64_t tp : {1, 2}) {
          Scenario scenario = toys::scenario();
          scenario.device = toys::shipped("devices", device).device;
          scenario.host = host;
          scenario.parallel.tp = tp;
          scenario.step.batch = batch;
          scenario.host.mode = HostMode::graph;
          const double graph = evaluated(scenario).metrics.step_time.value;
          scenario.host.mode = HostMode::eager;
          EXPECT_GE(evaluated(scenario).metrics.step_time.value, graph * (1 - 1e-12))
              << device << " " << host.name << " batch " << batch << " tp " << tp;
        }
      }
    }
  }
}

// Told to launch kernel by kernel, an engine whose decodes replay graphs goes through its own code for each of them: a step takes as
// long as all its launches where the device is faster.
TEST(HostLaws, EagerDecodesTakeTheirLaunches) {
  Scenario scenario = toys::scenario();
  scenario.device = toys::shipped("devices", "h200-sxm").device;
  scenario.model = toys::shipped("models", "llama-3.1-8b").model;
  scenario.step.batch = 4;
  for (const char* name : {"vllm-v1", "vllm-v1-synchronous", "vllm-v0", "sglang"}) {
    scenario.host = toys::shipped("hosts", name).host;
    const double graph = evaluated(scenario).metrics.step_time.value;
    scenario.host.mode = HostMode::eager;
    const Outcome eager = evaluated(scenario);
    double launches = 1;  // the first is not hidden
    for (const KernelRow& row : eager.kernels) {
      if (row.bound != Bound::host) launches += row.work.calls;
    }
    const double own = scenario.host.eager_launch_cost.value;
    EXPECT_GE(own, 20e-6) << name;
    EXPECT_GE(eager.metrics.step_time.value, launches * own) << name;
    EXPECT_GT(eager.metrics.step_time.value, 1.3 * graph) << name;
  }
  // No less than what a compiled launch takes, and nothing where graphs are replayed.
  scenario.host = toys::no_host();
  scenario.host.launch_cost = Seconds{1e-3};
  scenario.host.eager_launch_cost = Seconds{1e-6};
  scenario.host.mode = HostMode::eager;
  const double slow = evaluated(scenario).metrics.step_time.value;
  scenario.host.eager_launch_cost = Seconds{0};
  EXPECT_EQ(evaluated(scenario).metrics.step_time.value, slow);
  scenario.host.mode = HostMode::graph;
  const double replayed = evaluated(scenario).metrics.step_time.value;
  scenario.host.eager_launch_cost = Seconds{1};
  EXPECT_EQ(evaluated(scenario).metrics.step_time.value, replayed);
}

TEST(HostLaws, BothModesHaveGapsBetweenTheirKernels) {
  Scenario scenario = toys::scenario();
  scenario.host.kernel_gap = Seconds{1e-6};
  for (const StepPhase phase : {StepPhase::decode, StepPhase::prefill}) {
    scenario.step.phase = phase;
    scenario.host.mode = HostMode::graph;
    const double graph = evaluated(scenario).metrics.gap_time.value;
    scenario.host.mode = HostMode::eager;
    EXPECT_GT(graph, 0);
    EXPECT_DOUBLE_EQ(evaluated(scenario).metrics.gap_time.value, graph);
  }
}

// However a step is launched and whatever the device takes, the parts of host_time and the line of serving agree.
TEST(HostLaws, TheLineOfAStepIsTheSumOfItsParts) {
  for (const HostSettings& host : toys::shipped_hosts()) {
    for (const LaunchMode mode : {LaunchMode::eager, LaunchMode::replay}) {
      for (const double device : {0.0, 1e-4, 1e-3, 3e-3, 1e-2, 1.0}) {
        for (const double launches : {1.0, 100.0, 1000.0}) {
          for (const std::int64_t sequences : {1, 64, 1024}) {
            const StepWork work{.launches = launches,
                                .layers = launches / 10,
                                .sequences = sequences,
                                .kv_tokens = 1000 * double(sequences)};
            const HostLine line = host_line(work, mode, host);
            const Seconds sum =
                Seconds{device} + host_time(Seconds{device}, work, mode, host).total();
            EXPECT_NEAR(sum.value, std::max(device + line.added.value, line.least.value),
                        1e-12 * sum.value)
                << host.name;
          }
        }
      }
    }
  }
}

// An engine whose own code takes 100 ms for each layer reads no prompt faster than that, however short, alone or served. That is what
// prompts were measured to take: decodes take their launches, with a graph or without. Where the device takes longer, the host is not
// waited for.
TEST(HostLaws, CodeOfLayersIsGoneThroughForPrompts) {
  Scenario scenario = toys::scenario();
  scenario.request = {.batch = 1, .prompt = 2, .cached = 0, .output = 2};
  scenario.load.lengths.prompt = 2;
  scenario.load.lengths.output = 2;
  scenario.load.requests = 1;
  scenario.load.measure = MeasureKind::whole;
  const double layers = double(scenario.model.layers);
  for (const Task task : {Task::request, Task::serve}) {
    scenario.task = task;
    for (const HostMode mode : {HostMode::graph, HostMode::eager}) {
      scenario.host = {.mode = mode, .launch_cost = Seconds{0}, .layer_cost = Seconds{0.1}};
      scenario.host.step_overhead = scenario.host.step_per_sequence = Seconds{0};
      const Metrics slow = evaluated(scenario).metrics;
      EXPECT_NEAR(slow.ttft.value, layers * 0.1, 1e-9);
      scenario.host.layer_cost = Seconds{0};
      const Metrics fast = evaluated(scenario).metrics;
      EXPECT_NEAR(slow.tpot.value, fast.tpot.value, 1e-9);
      scenario.host.layer_cost = fast.ttft / layers * 0.5;
      EXPECT_NEAR(evaluated(scenario).metrics.ttft.value, fast.ttft.value, 1e-9);
    }
  }
}

// Whoever adds one sequence to the largest batch with a graph pays for launching kernels one by one, which a model of some size hides:
// no shipped engine loses more than a tenth there, by a step on its own or in serving.
TEST(HostLaws, NoCliffBehindTheLargestGraph) {
  int engines = 0;
  for (const HostSettings& host : toys::shipped_hosts()) {
    if (host.mode != HostMode::graph || host.largest_graph > 4096) continue;
    ++engines;
    for (const auto& [model, tp] :
         {std::pair{"llama-3.1-8b", 1}, {"llama-3.1-70b", 4}, {"llama-3.1-70b", 8}}) {
      Scenario scenario = toys::scenario();
      scenario.device = toys::shipped("devices", "h200-sxm").device;
      scenario.model = toys::shipped("models", model).model;
      scenario.host = host;
      scenario.parallel.tp = tp;
      scenario.step.context = 128;
      scenario.step.batch = host.largest_graph;
      const double graph = evaluated(scenario).metrics.step_time.value;
      scenario.step.batch = host.largest_graph + 1;
      const double beyond = evaluated(scenario).metrics.step_time.value;
      EXPECT_LE(beyond, 1.1 * graph) << host.name << " " << model << " tp " << tp;
      EXPECT_GE(beyond, 0.95 * graph) << host.name << " " << model << " tp " << tp;
    }
  }
  EXPECT_GE(engines, 8);
}

// A prompt of 100 tokens and 49 decodes that attend to 101 to 149: 100 + 49 x 125 tokens are listed, for a request on its own
// as for one that is served, whoever sets the pace. A host that is not waited for lists them meanwhile.
TEST(HostLaws, TokensInCachesAreListedInEveryStep) {
  constexpr double per_token = 1e-6;
  for (const Task task : {Task::request, Task::serve}) {
    for (const HostMode mode : {HostMode::eager, HostMode::graph}) {
      for (const double overhead : {0.0, 20e-3}) {
        Scenario scenario = toys::scenario();
        scenario.task = task;
        scenario.request.prompt = scenario.load.lengths.prompt = 100;
        scenario.request.output = scenario.load.lengths.output = 50;
        scenario.load.requests = 1;
        scenario.load.measure = MeasureKind::whole;
        scenario.host.mode = mode;
        scenario.host.step_overhead = Seconds{overhead};
        scenario.host.asynchronous = false;
        const double without = evaluated(scenario).metrics.e2e.value;
        scenario.host.step_per_kv_token = Seconds{per_token};
        EXPECT_NEAR(evaluated(scenario).metrics.e2e.value - without, per_token * (100 + 49 * 125),
                    1e-9)
            << name_of(task) << " " << name_of(mode);
        scenario.host.asynchronous = true;
        scenario.host.step_per_kv_token = Seconds{0};
        const double beside = evaluated(scenario).metrics.e2e.value;
        scenario.host.step_per_kv_token = Seconds{per_token};
        EXPECT_EQ(evaluated(scenario).metrics.e2e.value, beside);
      }
    }
  }
}

TEST(HostLaws, StepsAndRequestsHaveNoFrontEnd) {
  for (const Task task : {Task::step, Task::request}) {
    Scenario scenario = toys::scenario();
    scenario.task = task;
    scenario.step.batch = scenario.request.batch = 256;
    const double without = evaluated(scenario).metrics.output.value;
    scenario.host.front_end_merges = false;
    scenario.host.front_end_per_message = Seconds{1e-3};
    EXPECT_EQ(evaluated(scenario).metrics.output.value, without);
  }
}

// So a narrower format shows in a large batch, whatever host ships with an engine.
// No engine's: made for training, with autograd on, or a plain loop, which launches each cast from Python.
bool is_no_engines(const HostSettings& host) {
  constexpr std::string_view kNames[] = {"pytorch-training", "megatron", "torchtitan",
                                         "deepspeed-zero-3", "eager-pytorch"};
  return std::ranges::find(kNames, host.name) != std::end(kNames);
}

TEST(HostLaws, AShippedHostDoesNotHideTheFormatOfALargeBatch) {
  for (const HostSettings& host : toys::shipped_hosts()) {
    if (is_no_engines(host)) continue;
    for (const std::int64_t batch : {256, 512, 1024}) {
      Scenario scenario = toys::scenario();
      scenario.device = toys::shipped("devices", "h200-sxm").device;
      scenario.model = toys::shipped("models", "llama-3.1-8b").model;
      scenario.host = host;
      // Whoever runs such batches captures graphs for them.
      scenario.host.largest_graph = std::max(host.largest_graph, batch);
      scenario.step.batch = batch;
      scenario.step.context = 512;
      const double wide = evaluated(scenario).metrics.step_time.value;
      scenario.quant.weights = scenario.quant.activations = Dtype::fp8;
      EXPECT_LT(evaluated(scenario).metrics.step_time.value, 0.99 * wide)
          << host.name << " batch " << batch;
    }
  }
}

// Engines that capture graphs of so many requests capture them with their proposals: a draft does not make their steps eager.
TEST(HostLaws, GraphsOfSequencesHoldWithDrafts) {
  int sequences = 0;
  for (const HostSettings& host : toys::shipped_hosts()) {
    if (host.graph_sizes == GraphSizes::tokens) continue;
    ++sequences;
    for (const std::int64_t batch : {std::int64_t{1}, std::int64_t{32}, host.largest_graph}) {
      EXPECT_EQ(launch_mode(true, {batch, 5}, host), LaunchMode::replay) << host.name << batch;
    }
  }
  EXPECT_EQ(sequences, 6);  // SGLang's and TensorRT-LLM's
}

// One request alone: each of its tokens waits for the device or for the front end, whichever is longer.
TEST(HostLaws, InServingTheFrontEndIsTheLeastTimeOfATokenAndOverlapsTheDevice) {
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.host = toys::no_host();
  const Resources resources = toys::trace({{0, 16, 65}});
  const double device = evaluate(scenario, resources).metrics.tpot.value;
  for (const double share : {0.5, 0.99, 2.0, 10.0}) {
    scenario.host.front_end_merges = false;
    scenario.host.front_end_per_message = Seconds{share * device};
    EXPECT_NEAR(evaluate(scenario, resources).metrics.tpot.value, std::max(1.0, share) * device,
                0.02 * device * std::max(1.0, share))
        << share;
  }
}

}  // namespace
}  // namespace engine

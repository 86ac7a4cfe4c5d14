// What devices that share a sequence or weights send one another, what it takes from work beside it, and what narrow formats,
// favourite experts and optimizers add: each held to what follows from its definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "engine/evaluate.h"
#include "engine/model/expert_places.h"
#include "engine/training/replica_traffic.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"
#include "tests/support/training_toy.h"

namespace engine {
namespace {

using toys::figures_of;
using toys::training;

Scenario split_sequence(std::int64_t sharers) {
  Scenario scenario = training();
  scenario.parallel.tp = sharers;
  scenario.train.sequence_parallel = true;
  return scenario;
}

struct Travel {
  double calls = 0, bytes = 0;
};
std::map<std::pair<Phase, Family>, Travel> travels_of(const Scenario& scenario) {
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  std::map<std::pair<Phase, Family>, Travel> travels;
  for (const KernelRow& row : outcome.kernels) {
    if (row.op != OpName::attention_reduce && row.op != OpName::mlp_reduce) continue;
    Travel& travel = travels[{row.phase, row.family}];
    travel.calls += row.work.calls;
    travel.bytes += row.work.bytes.value;
  }
  return travels;
}

// Two gathers and two scatters a layer forward; backward as many the other way round, and two gathers more for the inputs,
// of which devices keep their own part only.
TEST(SplitSequence, GathersInputsOnceMore) {
  for (const bool pieces : {false, true}) {
    for (const std::int64_t sharers : {2, 4, 8}) {
      Scenario scenario = split_sequence(sharers);
      scenario.train.tp_overlap = pieces;
      auto travels = travels_of(scenario);
      const double layers = 10 * 16;  // of all micro-batches
      EXPECT_NEAR((travels[{Phase::forward, Family::all_gather}].calls), 2 * layers, 1e-6);
      EXPECT_NEAR((travels[{Phase::forward, Family::reduce_scatter}].calls), 2 * layers, 1e-6);
      EXPECT_NEAR((travels[{Phase::backward, Family::all_gather}].calls), 4 * layers, 1e-6);
      EXPECT_NEAR((travels[{Phase::backward, Family::reduce_scatter}].calls), 2 * layers, 1e-6);
      EXPECT_NEAR((travels[{Phase::backward, Family::all_gather}].bytes /
                   travels[{Phase::forward, Family::all_gather}].bytes),
                  2, 1e-9);
    }
  }
}

// Each device makes latents of its own part of the sequence, and these are gathered in place of the stream; so they are once more for the
// gradients of what expands them.
TEST(SplitSequence, GathersLatents) {
  for (const std::int64_t q_rank : {0, 1536}) {
    Scenario scenario = split_sequence(4);
    auto stream = travels_of(scenario);
    scenario.model = toys::latent();
    scenario.model.mla.q_rank = q_rank;
    auto latent = travels_of(scenario);
    const double queries = q_rank > 0 ? 1536 : 4096;
    const double gathered = queries + 512 + 64 + 4096, again = queries + 512 + 4096;
    const auto bytes = [](auto& travels, Phase phase, Family family) {
      return travels[{phase, family}].bytes;
    };
    const double forward = bytes(stream, Phase::forward, Family::all_gather) / (2 * 4096);
    EXPECT_NEAR(bytes(latent, Phase::forward, Family::all_gather) / forward, gathered, 1);
    EXPECT_NEAR(bytes(latent, Phase::forward, Family::reduce_scatter),
                bytes(stream, Phase::forward, Family::reduce_scatter), 1);
    EXPECT_NEAR(bytes(latent, Phase::backward, Family::reduce_scatter) / forward, gathered, 1);
    EXPECT_NEAR(bytes(latent, Phase::backward, Family::all_gather) / forward, 2 * 4096 + again, 1);
  }
}

// What devices have whole works on parts of a split sequence, so that none repeats what another does.
TEST(SplitSequence, NoDeviceRepeatsAnother) {
  for (const ModelSpec& model : {toys::latent(), toys::mixture()}) {
    Scenario alone = training();
    alone.model = model;
    alone.model.moe.shared_gate = alone.model.is_moe();
    alone.train.device_mtbf = Seconds{1e9};
    const Metrics one = figures_of(alone);
    const auto flops = [](const Metrics& of) {
      return of.model_flops_utilization * of.iteration_time.value * of.devices;
    };
    for (const std::int64_t sharers : {2, 8}) {
      Scenario scenario = alone;
      scenario.parallel.tp = sharers;
      const Metrics whole = figures_of(scenario);
      scenario.train.sequence_parallel = true;
      const Metrics parts = figures_of(scenario);
      EXPECT_NEAR(flops(parts) / flops(one), 1, 1e-3) << model.name << " " << sharers;
      EXPECT_GT(flops(whole), flops(parts)) << model.name;
      // Nor is it written twice.
      EXPECT_NEAR(parts.checkpoint_size / one.checkpoint_size, 1, 1e-9) << model.name;
    }
  }
}

// What is gathered is cast before; what is summed up is not.
TEST(SplitSequence, NarrowInputsTravelNarrow) {
  Scenario scenario = split_sequence(4);
  auto wide = travels_of(scenario);
  scenario.quant.weights = scenario.quant.activations = Dtype::fp8;
  auto narrow = travels_of(scenario);
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    EXPECT_NEAR(
        (narrow[{phase, Family::all_gather}].bytes / wide[{phase, Family::all_gather}].bytes), 0.5,
        1e-9);
    EXPECT_EQ((narrow[{phase, Family::reduce_scatter}].bytes),
              (wide[{phase, Family::reduce_scatter}].bytes));
  }
}

TEST(SplitSequence, RowsAddUpWhateverTheSchedule) {
  for (const Schedule schedule : {Schedule::one_f_one_b, Schedule::zero_bubble}) {
    for (const bool pieces : {false, true}) {
      Scenario scenario = split_sequence(4);
      scenario.parallel.pp = 2;
      scenario.train.schedule = schedule;
      scenario.train.tp_overlap = pieces;
      const Metrics figures = figures_of(scenario);
      EXPECT_GT(figures.tensor_exchange_time.value, 0);
      EXPECT_LT(figures.tensor_exchange_time, figures.iteration_time);
    }
  }
}

// Who waits for no other stage puts no gradients off to fill the time.
TEST(SplitSequence, AStageAlonePutsNothingOff) {
  for (const bool pieces : {false, true}) {
    Scenario scenario = split_sequence(4);
    scenario.train.tp_overlap = pieces;
    scenario.train.schedule = Schedule::one_f_one_b;
    const Metrics at_once = figures_of(scenario);
    scenario.train.schedule = Schedule::zero_bubble;
    EXPECT_EQ(figures_of(scenario).iteration_time, at_once.iteration_time);
    EXPECT_EQ(figures_of(scenario).tensor_exchange_time, at_once.tensor_exchange_time);
  }
}

// Both take as long together as the longer of them needs: traffic that outlasts the work it slows down is none the longer for it.
TEST(CollectiveMultiprocessors, DoNotDelayTrafficThatOutlastsTheWork) {
  const Device device = toys::gpu();
  const double layers = 1e12;
  for (const std::int64_t taken : {0, 4, 16, 40}) {
    const TrafficPath path{true, taken, device};
    const double share = double(taken) / double(device.multiprocessors);
    for (const double work : {0.1, 0.5, 0.8, 1.0, 1.2, 2.0, 8.0}) {
      const Seconds traffic{1};
      const Seconds both = Seconds{work} + exposed_traffic(Seconds{work}, traffic, layers, path);
      EXPECT_NEAR(both.value, std::max(1.0, work + share), 1e-9) << taken << " " << work;
    }
  }
}

// A collective takes what it occupies from the work beside it, and nothing where nothing is beside it.
TEST(CollectiveMultiprocessors, SlowWhatRunsBeside) {
  Scenario scenario = split_sequence(4);
  scenario.train.tp_overlap = true;
  Seconds before{0};
  for (const std::int64_t taken : {0, 4, 16, 64}) {
    scenario.train.collective_multiprocessors = taken;
    const Seconds now = figures_of(scenario).iteration_time;
    EXPECT_GT(now, before) << taken;
    before = now;
  }
  // Nobody takes more than there are.
  for (const std::int64_t taken : {99, 100, 101, 1024}) {
    scenario.train.collective_multiprocessors = taken;
    EXPECT_GE(figures_of(scenario).iteration_time, before) << taken;
  }
  scenario = training();
  const Seconds alone = figures_of(scenario).iteration_time;
  scenario.train.collective_multiprocessors = 64;
  EXPECT_EQ(figures_of(scenario).iteration_time, alone);
}

// Weights that stay are gathered once a micro-batch instead of twice, and lie there whole.
TEST(Reshard, TradesAGatherForMemory) {
  Scenario scenario = training();
  scenario.parallel.dp = 8;
  scenario.train.zero = 3;
  scenario.train.overlap = false;
  const Metrics dropped = figures_of(scenario);
  scenario.train.reshard = false;
  const Metrics kept = figures_of(scenario);
  scenario.train.zero = 2;
  const Metrics whole = figures_of(scenario);
  // Two gathers and a scatter in twice as many bytes, against one and a scatter.
  EXPECT_NEAR(kept.replica_exposed_time / dropped.replica_exposed_time, 3.0 / 4, 0.01);
  const Bytes lies = kept.weights + kept.gathered_memory;
  EXPECT_GT(lies, whole.weights);
  EXPECT_LT((lies - whole.weights) / whole.weights, 4.0 / 2 / 8 + 4.0 / 2 / 10 + 1e-9);
  EXPECT_GT(kept.peak_memory, dropped.peak_memory);
}

// Hopper sums fp8 products of gradients in other registers; later generations need not, and 16 bits never do.
TEST(PreciseSums, TakeHopperLonger) {
  const auto longer = [](const char* device, Dtype format) {
    Scenario scenario = training();
    scenario.device = toys::shipped("devices", device).device;
    scenario.quant.weights = scenario.quant.activations = format;
    scenario.quant.group = 1 << 20;
    std::map<Phase, double> seconds;
    const Outcome outcome = evaluate(scenario, toys::transfer_resources());
    EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
    for (const KernelRow& row : outcome.kernels) {
      // As many rows as columns: a gradient's product has the same shape as the product.
      if (row.op == OpName::attention_out)
        seconds[row.phase] += row.work.time.value / row.work.calls;
    }
    return seconds[Phase::backward] / seconds[Phase::forward];
  };
  EXPECT_GT(longer("h100-sxm", Dtype::fp8), longer("b200-sxm", Dtype::fp8) + 0.01);
  EXPECT_LT(longer("h100-sxm", Dtype::fp8), 1.2);
}

Scenario skewed(double skew, std::int64_t devices) {
  Scenario scenario = training();
  scenario.model = toys::mixture();
  scenario.parallel = {.dp = devices, .ep = devices};
  scenario.train.routing_skew = skew;
  return scenario;
}

// The fullest device keeps more, up to all of the copies; one device has them all anyway.
TEST(RoutingSkew, FillsTheMemoryOfTheFullestDevice) {
  Bytes before{0};
  for (const double skew : {0.0, 0.5, 1.0, 2.0}) {
    const Bytes now = figures_of(skewed(skew, 8)).kept_activation_memory;
    EXPECT_GT(now, before) << skew;
    before = now;
  }
  EXPECT_EQ(figures_of(skewed(2, 1)).kept_activation_memory,
            figures_of(skewed(0, 1)).kept_activation_memory);
  EXPECT_LT(before / figures_of(skewed(0, 8)).kept_activation_memory, 8);
}

// Two passes forward and two backward over what reaches a device, in narrow formats only.
TEST(PaddedExperts, AreCopiedThereAndBack) {
  Scenario scenario = skewed(0, 8);
  scenario.train.padded_experts = true;
  EXPECT_EQ(figures_of(scenario).iteration_time, figures_of(skewed(0, 8)).iteration_time);
  scenario.quant.weights = scenario.quant.activations = Dtype::fp8;
  scenario.device.launch_latency = Seconds{0};
  const Metrics padded = figures_of(scenario);
  scenario.train.padded_experts = false;
  const Metrics plain = figures_of(scenario);
  // 1,024 tokens twice, in and out of 4,096 values of 16 bits; ten layers of two micro-batches; half as much again backward.
  const double fullest =
      fullest_device({.tokens = 8 * 1024, .top_k = 2, .experts = 16, .local_experts = 2}, 0);
  const double pass = fullest * 2 * 2 * 1024 * 4096 * 2.0;
  const double bytes = 2 * pass * 10 * 2;
  const double least = bytes / scenario.device.memory_bandwidth.value;
  EXPECT_NEAR((padded.forward_time - plain.forward_time).value / least, 1, 0.01);
  EXPECT_NEAR((padded.backward_time - plain.backward_time).value / least, 1.5, 0.01);
}

// Bytes of a weight by the definitions: Adam has two moments, 8-bit Adam two bytes, Adafactor a row and a column of each
// matrix, Muon and momentum one moment.
TEST(Optimizers, KeepWhatTheirDefinitionsSay) {
  struct Kept {
    Optimizer optimizer;
    double moments;
  };
  for (const auto& [optimizer, moments] :
       {Kept{Optimizer::adamw, 8}, Kept{Optimizer::adam8bit, 2}, Kept{Optimizer::adafactor, 0},
        Kept{Optimizer::muon, 4}, Kept{Optimizer::sgd, 4}}) {
    Scenario scenario = training();
    scenario.train.optimizer = optimizer;
    const Metrics figures = figures_of(scenario);
    EXPECT_NEAR(figures.optimizer_memory.value / figures.parameters, 4 + moments, 1e-9);
  }
}

// An update moves the gradient in, the copy of the weight and what is remembered in and out, and the weight out. Adafactor
// reads gradients three times: for sums of rows and columns, for the size of the update, and to apply it.
TEST(Optimizers, MoveWhatTheyKeep) {
  const auto seconds = [](Optimizer optimizer) {
    Scenario scenario = training();
    scenario.train.optimizer = optimizer;
    scenario.device.launch_latency = Seconds{0};
    return figures_of(scenario).optimizer_time;
  };
  const Seconds adam = seconds(Optimizer::adamw);
  EXPECT_NEAR(seconds(Optimizer::sgd) / adam, (4 + 8 + 8 + 2) / (4 + 8 + 16 + 2.0), 1e-9);
  EXPECT_NEAR(seconds(Optimizer::adam8bit) / adam, (4 + 8 + 4 + 2) / (4 + 8 + 16 + 2.0), 1e-9);
  EXPECT_NEAR(seconds(Optimizer::adafactor) / adam, (12 + 8 + 2) / (4 + 8 + 16 + 2.0), 1e-9);
}

}  // namespace
}  // namespace engine

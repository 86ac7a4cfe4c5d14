// Passes in pairs in a whole training step: what they hide, what DualPipe keeps twice, and layers that are replayed as graphs.
#include <gtest/gtest.h>

#include "engine/evaluate.h"
#include "tests/support/strategies.h"
#include "tests/support/toys.h"
#include "tests/support/training_toy.h"

namespace engine {
namespace {

using toys::figures_of;

Scenario mixture_in_stages(Schedule schedule, std::int64_t micro_batches) {
  Scenario scenario = toys::training();
  scenario.model = toys::mixture();
  scenario.model.layers = 16;
  scenario.parallel = {.pp = 4, .dp = 8, .ep = 8};
  scenario.train.global_batch = 8 * micro_batches;
  scenario.train.schedule = schedule;
  scenario.train.virtual_stages = schedule == Schedule::interleaved ? 2 : 1;
  scenario.train.blocking_sends = false;
  scenario.train.zero = 1;
  scenario.device.memory_capacity = Bytes{1e15};
  return scenario;
}

constexpr Schedule kPaired[] = {Schedule::one_f_one_b, Schedule::interleaved, Schedule::dualpipe,
                                Schedule::dualpipe_v};

// Passes become shorter by no more than they waited, and passes that fill and empty the pipeline by nothing.
TEST(Pairs, HideNoMoreThanWasExposed) {
  for (const Schedule schedule : kPaired) {
    double gain_before = 0;
    for (const std::int64_t micro_batches : {8, 16, 64}) {
      Scenario scenario = mixture_in_stages(schedule, micro_batches);
      const Metrics apart = figures_of(scenario);
      scenario.train.batch_overlap = true;
      const Metrics beside = figures_of(scenario);
      const Seconds shorter =
          apart.forward_time + apart.backward_time - beside.forward_time - beside.backward_time;
      const Seconds hidden = apart.expert_exchange_time - beside.expert_exchange_time;
      EXPECT_GT(hidden.value, 0) << name_of(schedule);
      EXPECT_LE(shorter.value, hidden.value * (1 + 1e-9)) << name_of(schedule);
      // The more micro-batches, the smaller the part of them that goes alone.
      const double gain = hidden / apart.expert_exchange_time;
      EXPECT_GT(gain, gain_before) << name_of(schedule) << " " << micro_batches;
      EXPECT_LT(gain, 1);
      gain_before = gain;
    }
  }
}

// Whatever bounds a pass: its host, its exchange, activations on their way to the host. Faster links and memory never make it slower.
TEST(Pairs, FasterDevicesAreNeverSlower) {
  for (const Schedule schedule : kPaired) {
    for (const double launch : {0.0, 1e-5, 5e-5}) {
      for (const bool offload : {false, true}) {
        Scenario scenario = toys::step_of("qwen3-30b-a3b", "h200-sxm");
        scenario.parallel = {.tp = 2, .pp = 4, .dp = 8, .ep = 8};
        scenario.train.global_batch = 64;
        scenario.train.schedule = schedule;
        scenario.train.virtual_stages = schedule == Schedule::interleaved ? 2 : 1;
        scenario.train.sequence_parallel = scenario.train.batch_overlap = true;
        scenario.train.offload_activations = offload;
        scenario.host.launch_cost = Seconds{launch};
        const auto takes = [&](double links, double memory) {
          Scenario faster = scenario;
          faster.device.scale_up.bandwidth = faster.device.scale_up.bandwidth * links;
          faster.device.memory_bandwidth = faster.device.memory_bandwidth * memory;
          return evaluate(faster, toys::transfer_resources()).metrics.iteration_time.value;
        };
        const double before = takes(1, 1) * (1 + 1e-9);
        EXPECT_LE(takes(4, 1), before) << name_of(schedule) << launch << offload;
        EXPECT_LE(takes(1, 4), before) << name_of(schedule) << launch << offload;
      }
    }
  }
}

TEST(Pairs, RowsAddUp) {
  for (const Schedule schedule : kPaired) {
    for (const std::int64_t zero : {1, 3}) {
      for (const bool overlap : {false, true}) {
        Scenario scenario = mixture_in_stages(schedule, 16);
        scenario.train.batch_overlap = overlap;
        scenario.train.zero = zero;
        const Outcome outcome = evaluate(scenario);
        ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
        Seconds sum = outcome.metrics.bubble_time;
        for (const KernelRow& row : outcome.kernels) sum += row.work.exposed();
        EXPECT_NEAR(sum / outcome.metrics.iteration_time, 1, 1e-9)
            << name_of(schedule) << zero << overlap;
      }
    }
  }
}

TEST(Pairs, AreRefusedWhereAScheduleHasNone) {
  for (const Schedule schedule : {Schedule::gpipe, Schedule::zero_bubble}) {
    Scenario scenario = mixture_in_stages(schedule, 16);
    scenario.train.batch_overlap = true;
    const Outcome outcome = evaluate(scenario);
    EXPECT_EQ(outcome.status, Status::infeasible);
    EXPECT_EQ(outcome.reason,
              "train.batch_overlap puts each forward pass beside a backward pass, "
              "which " +
                  std::string(name_of(schedule)) +
                  " does apart; 1f1b, interleaved, dualpipe and dualpipe_v have "
                  "such pairs");
  }
}

// Two copies of all parameters and gradients, one of the optimizer's states where replicas share them out; activations of one pass
// more than there are stages, the same on all.
TEST(DualPipe, KeepsParametersTwice) {
  Scenario scenario = mixture_in_stages(Schedule::one_f_one_b, 16);
  scenario.model.vocabulary = 8;  // no stage has much besides its layers
  const Metrics once = figures_of(scenario);
  scenario.train.schedule = Schedule::dualpipe;
  const Metrics twice = figures_of(scenario);
  EXPECT_NEAR(twice.weights / once.weights, 2, 1e-3);
  EXPECT_NEAR(twice.gradient_memory / once.gradient_memory, 2, 1e-3);
  EXPECT_NEAR(twice.optimizer_memory / once.optimizer_memory, 1, 1e-3);
  EXPECT_NEAR(twice.kept_activation_memory / once.kept_activation_memory, 5.0 / 4, 1e-3);
  scenario.train.schedule = Schedule::dualpipe_v;
  const Metrics folded = figures_of(scenario);
  EXPECT_NEAR(folded.weights / once.weights, 1, 1e-3);
  EXPECT_NEAR(folded.kept_activation_memory / once.kept_activation_memory, 9.0 / 8, 1e-3);
}

// The same arithmetic for the same batch, whatever the order.
TEST(DualPipe, ComputesWhatOthersDo) {
  const Metrics plain = figures_of(mixture_in_stages(Schedule::one_f_one_b, 16));
  for (const Schedule schedule : {Schedule::dualpipe, Schedule::dualpipe_v}) {
    const Metrics dual = figures_of(mixture_in_stages(schedule, 16));
    EXPECT_NEAR(dual.model_flops_utilization * dual.iteration_time /
                    (plain.model_flops_utilization * plain.iteration_time),
                1, 1e-9);
    EXPECT_LT(dual.bubble_time, plain.bubble_time) << name_of(schedule);
  }
}

TEST(DualPipe, SaysWhatItNeeds) {
  const auto reason = [](Schedule schedule, std::int64_t pp, std::int64_t micro_batches) {
    Scenario scenario = mixture_in_stages(schedule, micro_batches);
    scenario.parallel.pp = pp;
    return evaluate(scenario).reason;
  };
  EXPECT_EQ(
      reason(Schedule::dualpipe, 3, 16),
      "dualpipe pairs stages from both ends: parallel.pp 3 is odd (dualpipe_v folds any number "
      "of stages)");
  EXPECT_EQ(
      reason(Schedule::dualpipe, 4, 6),
      "dualpipe needs an even number of micro-batches, at least 2 x parallel.pp 4; there are 6");
  EXPECT_EQ(
      reason(Schedule::dualpipe, 4, 9),
      "dualpipe needs an even number of micro-batches, at least 2 x parallel.pp 4; there are 9");
  EXPECT_EQ(reason(Schedule::dualpipe_v, 4, 7),
            "dualpipe_v needs enough micro-batches, at least 2 x parallel.pp 4; there are 7");
  EXPECT_EQ(reason(Schedule::dualpipe_v, 3, 9), "");
  EXPECT_EQ(reason(Schedule::dualpipe, 1, 1), "");
}

// A host that bounds a step bounds it less; a step that the device bounds takes as long, and more memory.
TEST(CudaGraphs, TakeLaunchesOffTheHost) {
  for (const char* model : {"llama-3.2-1b", "qwen3-30b-a3b"}) {
    for (const double launch : {0.0, 5e-6, 5e-5}) {
      Scenario scenario = toys::step_of(model, "h100-sxm");
      scenario.train.sequence = 1024;
      scenario.host.launch_cost = Seconds{launch};
      scenario.host.graph_launch = Seconds{launch};
      scenario.host.layer_cost = Seconds{20 * launch};
      const Metrics eager = evaluate(scenario, toys::transfer_resources()).metrics;
      scenario.train.cuda_graphs = true;
      const Metrics graphs = evaluate(scenario, toys::transfer_resources()).metrics;
      EXPECT_LE(graphs.iteration_time, eager.iteration_time) << model << launch;
      EXPECT_GT(graphs.kept_activation_memory, eager.kept_activation_memory);
      if (launch == 0) {
        EXPECT_EQ(graphs.iteration_time, eager.iteration_time);
      }
      if (launch == 5e-5) {
        EXPECT_LT(graphs.iteration_time, eager.iteration_time * 0.8) << model;
      }
    }
  }
}

}  // namespace
}  // namespace engine

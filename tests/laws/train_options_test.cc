// Options of a training step and of a run, each held to what follows from its definition: groups that share things out,
// activations on the host, exchanges behind the shared expert, runs that end by a date or at a loss.
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "engine/evaluate.h"
#include "engine/training/run/scaling_law.h"
#include "tests/support/toys.h"
#include "tests/support/training_toy.h"

namespace engine {
namespace {

using toys::figures_of;
using toys::training;

// Things are shared out within a group by ZeRO's formula, whatever lies beyond it.
TEST(HybridSharding, SharesOutWithinTheGroup) {
  for (std::int64_t zero = 1; zero <= 3; ++zero) {
    for (const std::int64_t group : {1, 2, 8, 16}) {
      Scenario scenario = training();
      scenario.parallel.dp = 16;
      scenario.train.zero = zero;
      scenario.train.zero_group = group;
      const Metrics figures = figures_of(scenario);
      const auto share = [&](std::int64_t from) { return zero >= from ? double(group) : 1.0; };
      const double parameters = figures.parameters;
      const bool gathered = zero == 3 && group > 1;
      EXPECT_NEAR(figures.weights.value, (gathered ? 4 : 2) * parameters / share(3),
                  1e-6 * parameters);
      EXPECT_NEAR(figures.gradient_memory.value, 4 * parameters / share(2), 1e-6 * parameters);
      EXPECT_NEAR(figures.optimizer_memory.value, (gathered ? 8 : 12) * parameters / share(1),
                  1e-6 * parameters);
    }
  }
}

TEST(HybridSharding, OneGroupOfAllIsNoGroup) {
  Scenario scenario = training();
  scenario.parallel.dp = 16;
  scenario.train.zero = 3;
  const Metrics all = figures_of(scenario);
  scenario.train.zero_group = 16;
  EXPECT_EQ(figures_of(scenario).iteration_time, all.iteration_time);
  EXPECT_EQ(figures_of(scenario).peak_memory, all.peak_memory);
}

// Nodes of eight joined by a network ten times slower: weights that are gathered inside a node do not meet it.
TEST(HybridSharding, SparesASlowNetwork) {
  Scenario scenario = training();
  scenario.parallel.dp = 16;
  scenario.train.zero = 3;
  scenario.train.overlap = false;
  const Seconds all = figures_of(scenario).replica_exposed_time;
  scenario.train.zero_group = 8;
  EXPECT_LT(figures_of(scenario).replica_exposed_time, all);
}

// Gradients add up inside a group, pass by pass; groups sum up once, however many micro-batches there were.
TEST(HybridSharding, GroupsSumUpOnceAStep) {
  for (const std::int64_t zero : {2, 3}) {
    const auto summed = [zero](std::int64_t micro_batches) {
      Scenario scenario = training();
      scenario.parallel.dp = 16;
      scenario.train.zero = zero;
      scenario.train.zero_group = 8;
      scenario.train.global_batch = 16 * micro_batches * scenario.train.micro_batch;
      double across = 0, inside = 0;
      for (const KernelRow& row : evaluate(scenario).kernels) {
        if (row.op != OpName::gradient_sum || row.phase != Phase::gradients) continue;
        (row.family == Family::all_reduce ? across : inside) += row.work.bytes.value;
      }
      return std::pair(across, inside);
    };
    const auto [across, inside] = summed(1);
    const auto [across_8, inside_8] = summed(8);
    EXPECT_GT(across, 0) << zero;
    EXPECT_NEAR(across_8 / across, 1, 1e-12) << zero;
    EXPECT_NEAR(inside_8 / inside, 8, 1e-9) << zero;
  }
}

// What the device no longer keeps the host does, but for two layers on their way.
TEST(ActivationOffload, MovesWhatIsKept) {
  for (const Recompute recompute : {Recompute::none, Recompute::full}) {
    Scenario scenario = training();
    scenario.train.recompute = recompute;
    const Metrics here = figures_of(scenario);
    scenario.train.offload_activations = true;
    const Metrics there = figures_of(scenario);
    EXPECT_LT(there.peak_memory, here.peak_memory);
    const Bytes moved = there.host_memory;
    EXPECT_NEAR(
        (there.kept_activation_memory + moved - moved * (2.0 / 10)) / here.kept_activation_memory,
        1, 1e-9);
    EXPECT_TRUE(std::isnan(here.host_memory.value));
  }
}

TEST(ActivationOffload, TakesItsCopiesUnlessWorkHidesThem) {
  Scenario scenario = training();
  scenario.device.launch_latency = scenario.device.host_link.latency = Seconds{0};
  const Metrics here = figures_of(scenario);
  scenario.train.offload_activations = true;
  scenario.train.overlap = false;
  const Metrics apart = figures_of(scenario);
  // 16 micro-batches, out and back over 20 GB/s.
  const double copies = 2 * 16 * apart.host_memory.value / 20e9;
  EXPECT_NEAR(apart.offload_exposed_time.value, copies, 1e-9 * copies);
  EXPECT_NEAR((apart.iteration_time - here.iteration_time).value, copies, 1e-9 * copies);
  EXPECT_EQ(apart.offload_hidden_time.value, 0);
  scenario.train.overlap = true;
  const Metrics beside = figures_of(scenario);
  EXPECT_NEAR((beside.offload_exposed_time + beside.offload_hidden_time).value, copies,
              1e-9 * copies);
  EXPECT_NEAR((beside.iteration_time - here.iteration_time).value,
              beside.offload_exposed_time.value, 1e-9 * copies);
  scenario.device.host_link.bandwidth = BytesPerSecond{1e20};
  EXPECT_NEAR(figures_of(scenario).iteration_time / here.iteration_time, 1, 1e-9);
}

// Rows of the kernels table still add up to the step.
TEST(ActivationOffload, RowsAddUp) {
  Scenario scenario = training();
  scenario.train.offload_activations = true;
  const Outcome outcome = evaluate(scenario);
  Seconds rows;
  for (const KernelRow& row : outcome.kernels) rows += row.work.exposed();
  EXPECT_NEAR(rows / outcome.metrics.iteration_time, 1, 1e-9);
}

// Fewer inputs are kept and more layers are at work at once; the arithmetic is the same.
TEST(RecomputeLayers, TradeInputsForLayersAtWork) {
  Scenario scenario = training();
  scenario.train.recompute = Recompute::full;
  const Metrics one = figures_of(scenario);
  scenario.train.recompute_layers = 5;
  const Metrics five = figures_of(scenario);
  EXPECT_EQ(five.iteration_time, one.iteration_time);
  const double stream = 1024.0 * 4096 * 2;
  // Ten inputs and a layer, against two inputs and five layers; logits are gone by then.
  const double layer =
      (five.kept_activation_memory - one.kept_activation_memory).value / 4 + 2 * stream;
  EXPECT_GT(layer, 4 * stream);
  scenario.train.recompute_layers = 10;
  EXPECT_GT(figures_of(scenario).kept_activation_memory, five.kept_activation_memory);
}

Scenario shared_experts() {
  Scenario scenario = training();
  scenario.model = toys::mixture();
  scenario.parallel = {.dp = 8, .ep = 8};
  return scenario;
}

TEST(ExpertOverlap, HidesExchangeBehindTheSharedExpert) {
  Scenario scenario = shared_experts();
  scenario.train.overlap = false;  // gradients would have less work to hide behind
  scenario.train.collective_multiprocessors = 0;
  const Metrics apart = figures_of(scenario);
  scenario.train.expert_overlap = true;
  const Metrics beside = figures_of(scenario);
  EXPECT_LT(beside.expert_exchange_time, apart.expert_exchange_time);
  EXPECT_NEAR((apart.iteration_time - beside.iteration_time) /
                  (apart.expert_exchange_time - beside.expert_exchange_time),
              1, 1e-9);
}

TEST(ExpertOverlap, NeedsASharedExpert) {
  Scenario scenario = shared_experts();
  scenario.model.moe.shared_intermediate = 0;
  const Metrics apart = figures_of(scenario);
  scenario.train.expert_overlap = true;
  EXPECT_EQ(figures_of(scenario).iteration_time, apart.iteration_time);
}

TEST(LongRuns, WithoutChanceADeadlineIsMetOrNot) {
  Scenario scenario = training();
  scenario.train.tokens = 1e9;
  const Seconds takes = figures_of(scenario).run_time;
  scenario.train.deadline = takes * 1.001;
  EXPECT_EQ(figures_of(scenario).finish_probability, 1);
  scenario.train.deadline = takes * 0.999;
  EXPECT_EQ(figures_of(scenario).finish_probability, 0);
  EXPECT_TRUE(std::isnan(figures_of(scenario).run_time_p95.value));
}

TEST(LongRuns, ChanceMakesADeadlineLikely) {
  Scenario scenario = training();
  scenario.train.tokens = 1e9;
  scenario.train.jitter = 0.1;
  scenario.train.device_mtbf = figures_of(scenario).run_time * 2.0;  // half of a failure a run
  const Metrics figures = figures_of(scenario);
  EXPECT_GT(figures.run_time_p95, figures.run_time);
  double before = 0;
  for (const double share : {0.9, 0.97, 1.0, 1.03, 1.1, 2.0}) {
    scenario.train.deadline = figures.run_time * share;
    const double probability = figures_of(scenario).finish_probability;
    EXPECT_GE(probability, before);
    if (share == 1) {
      // Few failures: most runs have fewer than the mean.
      EXPECT_GT(probability, 0.5);
      EXPECT_LT(probability, 0.8);
    }
    before = probability;
  }
  EXPECT_NEAR(before, 1, 1e-6);
  scenario.train.deadline = figures.run_time_p95;
  EXPECT_NEAR(figures_of(scenario).finish_probability, 0.95, 1e-6);
}

// What hardly ever fails runs as what never does; nothing ends before a run without failures would.
TEST(LongRuns, AHugeTimeBetweenFailuresIsNoFailure) {
  Scenario scenario = training();
  scenario.train.tokens = 1e9;
  const Seconds takes = figures_of(scenario).run_time;
  scenario.train.device_mtbf = Seconds{1e60};
  for (const double share : {0.999, 1.0, 1.001}) {
    scenario.train.deadline = takes * share;
    const Metrics figures = figures_of(scenario);
    EXPECT_EQ(figures.finish_probability, share < 1 ? 0 : 1) << share;
    EXPECT_EQ(figures.run_time, takes);
    EXPECT_EQ(figures.run_time_p95, takes);
  }
  for (double mtbf = 1e3; mtbf < 1e12; mtbf *= 10) {
    scenario.train.device_mtbf = Seconds{mtbf};
    scenario.train.deadline = takes * 0.999999;
    const Metrics figures = figures_of(scenario);
    EXPECT_EQ(figures.finish_probability, 0) << mtbf;
    EXPECT_GE(figures.run_time_p95, takes) << mtbf;
  }
}

TEST(LongRuns, SlowLinksDelayWhatIsExchanged) {
  Scenario scenario = training();
  scenario.train.link_jitter = 0.2;
  const Metrics alone = figures_of(scenario);
  EXPECT_EQ(alone.iteration_time_p95, alone.iteration_time);
  scenario.parallel.tp = 4;
  const Metrics exchanging = figures_of(scenario);
  EXPECT_GT(exchanging.iteration_time_p95, exchanging.iteration_time);
  EXPECT_LT(exchanging.iteration_time_p95 - exchanging.iteration_time,
            exchanging.communication_time);
}

// Weights of the layers that nothing is passed back through are gathered once, those of the others twice.
TEST(SharedWeights, AreGatheredForThePassesThatNeedThem) {
  const auto gathered = [](Method method) {
    Scenario scenario = training();
    scenario.parallel.dp = 8;
    scenario.train.zero = 3;
    scenario.train.method = method;
    const Outcome outcome = evaluate(scenario);
    double bytes = 0;
    for (const KernelRow& row : outcome.kernels) {
      if (row.op == OpName::weight_gather) bytes += row.work.bytes.value;
    }
    return bytes;
  };
  const double all = gathered(Method::full);
  EXPECT_GT(all, 0);
  EXPECT_LT(gathered(Method::last_layers), 0.75 * all);
  EXPECT_GT(gathered(Method::last_layers), 0.5 * all);
}

// Chunks of a stage are passed one after the other: what travels for the next goes beside the present one.
TEST(SharedWeights, TravelAsWellBesideManyChunks) {
  const auto exposed = [](std::int64_t pp, std::int64_t chunks) {
    Scenario scenario = training();
    scenario.model.layers = 32;
    scenario.parallel.dp = 8;
    scenario.parallel.pp = pp;
    scenario.train.zero = 3;
    scenario.train.schedule = Schedule::interleaved;
    scenario.train.virtual_stages = chunks;
    scenario.train.global_batch = 64;
    return figures_of(scenario).replica_exposed_time.value;
  };
  EXPECT_EQ(exposed(1, 8), exposed(1, 1));
  EXPECT_LE(exposed(2, 8), exposed(2, 1) * 1.05);
}

// The law and its inverse; Chinchilla itself, 70 billion parameters and 1.4 trillion tokens, worked out by hand.
TEST(ScalingLaw, TokensForALossAreThoseThatReachIt) {
  EXPECT_NEAR(loss_law(ScalingLaw::hoffmann_2022).loss(70e9, 1.4e12), 1.937, 1e-3);
  for (const ScalingLaw law : {ScalingLaw::hoffmann_2022, ScalingLaw::besiroglu_2024}) {
    const LossLaw fit = loss_law(law);
    EXPECT_NEAR(fit.tokens_for(8e9, fit.loss(8e9, 15e12)) / 15e12, 1, 1e-9);
    EXPECT_LT(fit.loss(8e9, 2e12), fit.loss(8e9, 1e12));
    EXPECT_LT(fit.loss(16e9, 1e12), fit.loss(8e9, 1e12));
  }
}

TEST(ScalingLaw, SetsTheLengthOfARun) {
  Scenario scenario = training();
  scenario.train.scaling_law = ScalingLaw::hoffmann_2022;
  scenario.train.tokens = 1e11;
  const Metrics stated = figures_of(scenario);
  scenario.train.tokens = 0;
  scenario.train.loss = stated.run_loss;
  const Metrics asked = figures_of(scenario);
  EXPECT_NEAR(asked.run_tokens / 1e11, 1, 1e-9);
  EXPECT_NEAR(asked.run_time / stated.run_time, 1, 1e-9);
}

// Who keeps only a share of the gradients cannot sum up all of them over micro-batches: they travel after each.
TEST(SharedGradients, TravelWithEveryMicroBatch) {
  for (const bool overlap : {false, true}) {
    Scenario scenario = toys::training();
    scenario.parallel.dp = 4;
    scenario.train.overlap = overlap;
    const auto of = [&](std::int64_t zero, std::int64_t micro_batches) {
      scenario.train.zero = zero;
      scenario.train.global_batch = 4 * micro_batches;
      return toys::figures_of(scenario);
    };
    EXPECT_NEAR(of(2, 1).iteration_time / of(1, 1).iteration_time, 1, 1e-9);
    for (const std::int64_t count : {2, 8}) {
      EXPECT_GT(of(2, count).iteration_time, of(1, count).iteration_time) << count;
      EXPECT_LT(of(2, count).gradient_memory, of(1, count).gradient_memory) << count;
    }
  }
}

}  // namespace
}  // namespace engine

// Gradients that replicas share out: how often they travel, and what is held until then.
#include <gtest/gtest.h>

#include "engine/evaluate.h"
#include "tests/support/toys.h"
#include "tests/support/training_toy.h"

namespace engine {
namespace {

using toys::figures_of;

constexpr std::int64_t kStages = 4, kReplicas = 4;

Scenario pipeline(Schedule schedule, std::int64_t chunks_per_stage, std::int64_t micro_batches) {
  Scenario scenario = toys::training();
  scenario.model.layers = 32;
  scenario.parallel = {.pp = kStages, .dp = kReplicas};
  scenario.train.schedule = schedule;
  scenario.train.virtual_stages = chunks_per_stage;
  scenario.train.global_batch = kReplicas * micro_batches;
  return scenario;
}

// Bytes that travel between replicas to sum up gradients.
double sent(const Scenario& scenario) {
  double bytes = 0;
  for (const KernelRow& row : evaluate(scenario).kernels) {
    const bool between_replicas = row.phase == Phase::gradients && row.op == OpName::gradient_sum;
    if (between_replicas) bytes += row.work.bytes.value;
  }
  return bytes;
}

// How many times more often than once a step, and how much of what a replica that sums up all of them holds.
struct Sharing {
  double travels, held;
};
Sharing sharing_of(Scenario scenario) {
  scenario.train.zero = 1;
  const double once = sent(scenario), whole = figures_of(scenario).gradient_memory.value;
  scenario.train.zero = 2;
  return {sent(scenario) / once, figures_of(scenario).gradient_memory.value / whole};
}

// Stages with one chunk keep no sum: gradients travel after every pass, and a share of them is held.
TEST(SharedGradients, TravelWithEveryPassOfAStage) {
  for (const Schedule schedule : {Schedule::gpipe, Schedule::one_f_one_b, Schedule::zero_bubble}) {
    for (const std::int64_t micro_batches : {4, 16}) {
      const Sharing sharing = sharing_of(pipeline(schedule, 1, micro_batches));
      EXPECT_NEAR(sharing.travels, double(micro_batches), 1e-6);
      EXPECT_NEAR(sharing.held, 1.0 / kReplicas, 0.01);
    }
  }
}

// Chunks in turn: as many micro-batches as there are stages pass one in a row, and only its gradients are held whole, with those of
// the chunk before it, which travel meanwhile.
TEST(SharedGradients, OfChunksInTurnTravelOnceARow) {
  for (const std::int64_t chunks : {2, 4, 8}) {
    for (const std::int64_t rows : {1, 2, 4}) {
      Scenario scenario = pipeline(Schedule::interleaved, chunks, rows * kStages);
      const Sharing beside = sharing_of(scenario);
      EXPECT_NEAR(beside.travels, double(rows), 1e-6);
      EXPECT_NEAR(beside.held, 1.0 / kReplicas + 2.0 / double(chunks), 0.15);
      scenario.train.overlap = false;
      EXPECT_NEAR(sharing_of(scenario).held, 1.0 / kReplicas + 1.0 / double(chunks), 0.15);
    }
  }
}

// What a chunk sends goes on beside the next one's row of passes, and only the last one's beside nothing but its own pass.
TEST(SharedGradients, OfChunksGoOnBesideOthers) {
  for (const std::int64_t zero : {1, 2}) {
    const auto exposed = [&](std::int64_t chunks) {
      Scenario scenario = pipeline(Schedule::interleaved, chunks, kStages);
      scenario.train.zero = zero;
      scenario.train.collective_multiprocessors = 0;
      scenario.device.scale_up.bandwidth = BytesPerSecond{2e11};
      return figures_of(scenario).replica_exposed_time.value;
    };
    EXPECT_GT(exposed(4), 0);
    EXPECT_LT(exposed(4), 0.75 * exposed(2));
  }
}

// What is not summed up in place has to travel: nobody has the memory of the one and the time of the other.
TEST(SharedGradients, AreNeverFreeOfBoth) {
  for (const Schedule schedule :
       {Schedule::gpipe, Schedule::one_f_one_b, Schedule::interleaved, Schedule::zero_bubble}) {
    const std::int64_t chunks = schedule == Schedule::interleaved ? 4 : 1;
    for (const std::int64_t micro_batches : {4, 8, 32}) {
      Scenario scenario = pipeline(schedule, chunks, micro_batches);
      const Sharing sharing = sharing_of(scenario);
      EXPECT_TRUE(sharing.travels > double(micro_batches) - 1e-6 ||
                  sharing.held >= 1 / double(chunks))
          << name_of(schedule) << ' ' << micro_batches;
      scenario.train.overlap = false;
      scenario.train.zero = 1;
      const Metrics once = figures_of(scenario);
      scenario.train.zero = 2;
      const Metrics often = figures_of(scenario);
      if (sharing.travels > 1.5) {
        EXPECT_GT(often.replica_exposed_time, once.replica_exposed_time * 1.4);
        EXPECT_GT(often.iteration_time, once.iteration_time);
      } else {
        EXPECT_NEAR(often.replica_exposed_time / once.replica_exposed_time, 1, 1e-6);
      }
    }
  }
}

// Rows of the kernels table say what a step takes, however often gradients travel.
TEST(SharedGradients, AreInTheRows) {
  for (const Schedule schedule :
       {Schedule::one_f_one_b, Schedule::interleaved, Schedule::zero_bubble}) {
    for (const bool overlap : {false, true}) {
      Scenario scenario = pipeline(schedule, schedule == Schedule::interleaved ? 4 : 1, 8);
      scenario.train.zero = 2;
      scenario.train.overlap = overlap;
      const Outcome outcome = evaluate(scenario);
      Seconds rows = outcome.metrics.bubble_time;
      for (const KernelRow& row : outcome.kernels) rows += row.work.exposed();
      EXPECT_NEAR(rows / outcome.metrics.iteration_time, 1, 1e-6);
    }
  }
}

Scenario gathering() {
  Scenario scenario = toys::training();
  scenario.parallel.dp = 8;
  scenario.model.tied_embeddings = false;
  scenario.train.zero = 3;
  return scenario;
}

// Each layer that is gathered ahead lies there; without any, nothing goes on beside gathers.
TEST(Prefetch, TradesMemoryForWaiting) {
  Scenario scenario = gathering();
  const Metrics one = figures_of(scenario);
  const double ends = 2 * double(scenario.model.vocabulary) * double(scenario.model.hidden);
  const double layer = 2 * (one.parameters - ends) / double(scenario.model.layers);
  scenario.train.prefetch = 3;
  const Metrics three = figures_of(scenario);
  EXPECT_NEAR((three.gathered_memory - one.gathered_memory).value / (2 * layer), 1, 0.01);
  EXPECT_EQ(three.iteration_time, one.iteration_time);
  scenario.train.prefetch = 0;
  const Metrics none = figures_of(scenario);
  EXPECT_NEAR((one.gathered_memory - none.gathered_memory).value / layer, 1, 0.01);
  EXPECT_GT(none.replica_exposed_time, one.replica_exposed_time);
  EXPECT_GT(none.replica_hidden_time.value, 0);  // gradients
  scenario.train.overlap = false;
  const Metrics alone = figures_of(scenario);
  EXPECT_GT(alone.iteration_time, none.iteration_time);
  scenario.train.prefetch = 1;
  EXPECT_NEAR(figures_of(scenario).iteration_time / alone.iteration_time, 1, 1e-9);
}

// Plain FSDP: the root has both ends in one tensor, gathered once and kept, and their gradients in another. By hand: 2 + 4 bytes of
// both ends, beside two layers and the gradients of one.
TEST(RootUnit, KeepsBothEnds) {
  Scenario scenario = gathering();
  const Metrics apart = figures_of(scenario);
  scenario.train.root_unit = true;
  const Metrics root = figures_of(scenario);
  const double ends = 2 * double(scenario.model.vocabulary) * double(scenario.model.hidden);
  const double layer = (root.parameters - ends) / double(scenario.model.layers);
  EXPECT_NEAR(root.gathered_memory.value / (6 * ends + 8 * layer), 1, 1e-3);
  EXPECT_GT(root.peak_memory, apart.peak_memory);
  // They come once, not twice.
  const auto gathered = [](const Scenario& point) {
    double bytes = 0;
    for (const KernelRow& row : evaluate(point).kernels) {
      if (row.op == OpName::weight_gather) bytes += row.work.bytes.value;
    }
    return bytes;
  };
  const double twice = gathered(gathering());
  EXPECT_NEAR(gathered(scenario) / twice, 1 - 0.5 * ends / root.parameters, 1e-3);
}

// Weights that stay from their forward to their backward pass travel once, as updated ones do, and gradients as with ZeRO 2: both go
// on beside the same passes, whatever the network is worth.
TEST(SharedWeights, GoOnBesideAllOfABackwardPass) {
  for (const double gigabytes : {5, 20, 40, 80, 400}) {
    Scenario scenario = toys::training();
    scenario.device.scale_up.bandwidth = BytesPerSecond{gigabytes * 1e9};
    scenario.parallel.dp = 8;
    scenario.train.global_batch = 8;
    scenario.train.sequence = 4096;
    const auto time = [&](std::int64_t zero) {
      scenario.train.zero = zero;
      scenario.train.reshard = false;
      return figures_of(scenario).iteration_time.value;
    };
    EXPECT_NEAR(time(3) / time(2), 1, 0.03) << gigabytes;
  }
}

// Whoever is alone shares nothing out.
TEST(SharedStates, OfOneReplicaAreItsOwn) {
  for (const ModelSpec& model : {toys::model(), toys::mixture()}) {
    Scenario scenario = toys::training();
    scenario.model = model;
    const Metrics whole = figures_of(scenario);
    for (const std::int64_t zero : {1, 2, 3}) {
      scenario.train.zero = zero;
      const Metrics shared = figures_of(scenario);
      EXPECT_NEAR(shared.iteration_time / whole.iteration_time, 1, 1e-9) << zero;
      EXPECT_NEAR(shared.peak_memory / whole.peak_memory, 1, 1e-9) << zero;
    }
  }
}

}  // namespace
}  // namespace engine

// What no training point may do, whatever its settings: get slower on faster devices, take more memory for being offloaded,
// attend to more than a sequence has, lose more than a whole run.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/base/random.h"
#include "engine/evaluate.h"
#include "engine/training/passes/packed_documents.h"
#include "tests/support/toys.h"
#include "tests/support/training_toy.h"

namespace engine {
namespace {

using toys::figures_of;
using toys::training;

TEST(OffloadedActivations, NeverTakeMoreMemory) {
  for (const std::int64_t layers : {1, 2, 3, 8}) {
    for (const Recompute recompute : {Recompute::none, Recompute::full}) {
      Scenario scenario = training();
      scenario.model.layers = layers;
      scenario.train.recompute = recompute;
      const Bytes kept = figures_of(scenario).peak_memory;
      scenario.train.offload_activations = true;
      scenario.device.host_link.bandwidth = BytesPerSecond{5e10};
      EXPECT_LE(figures_of(scenario).peak_memory, kept) << layers;
    }
  }
}

TEST(OffloadedActivations, AreNeverSlowerOnFasterDevices) {
  for (const Schedule schedule : {Schedule::one_f_one_b, Schedule::zero_bubble}) {
    Seconds before{1e9};
    for (const double faster : {1.0, 1.5, 4.0, 20.0}) {
      Scenario scenario = training();
      scenario.parallel = {.pp = 4, .dp = 2};
      scenario.model.layers = 8;
      scenario.train.schedule = schedule;
      scenario.train.offload_activations = true;
      scenario.device.host_link.bandwidth = BytesPerSecond{5e9};
      scenario.device.memory_bandwidth *= faster;
      const Seconds now = figures_of(scenario).iteration_time;
      EXPECT_LE(now.value, before.value * (1 + 1e-12)) << faster;
      before = now;
    }
  }
}

// However a stage's layers are cut, the device copies one's activations beside the next one's work.
TEST(OffloadedActivations, TravelAsWellBesideManyChunks) {
  Scenario scenario = training();
  scenario.model.layers = 16;
  scenario.model.vocabulary =
      100;  // logits would be work of one chunk, beside which more is hidden
  scenario.parallel.pp = 2;
  scenario.train.schedule = Schedule::interleaved;
  scenario.train.virtual_stages = 2;
  scenario.train.offload_activations = true;
  scenario.device.host_link.bandwidth = BytesPerSecond{5e10};
  const Seconds few = figures_of(scenario).offload_exposed_time;
  scenario.train.virtual_stages = 8;
  EXPECT_LE(figures_of(scenario).offload_exposed_time / few, 1.01);
}

TEST(SharedWeights, OneReplicaGathersNothing) {
  Scenario scenario = training();
  const Bytes whole = figures_of(scenario).peak_memory;
  scenario.train.zero = 3;
  const Metrics alone = figures_of(scenario);
  EXPECT_EQ(alone.gathered_memory.value, 0);
  EXPECT_EQ(alone.peak_memory, whole);
  scenario.parallel.dp = 2;
  EXPECT_GT(figures_of(scenario).gathered_memory.value, 0);
}

// Frozen products hide what trained ones hide.
TEST(Adapters, LeaveCollectivesBehindTheirProducts) {
  Scenario scenario = training();
  scenario.parallel.tp = 4;
  scenario.train.sequence_parallel = true;
  for (const Method method : {Method::lora, Method::qlora}) {
    scenario.train.method = method;
    scenario.train.tp_overlap = false;
    const Seconds apart = figures_of(scenario).tensor_exchange_time;
    scenario.train.tp_overlap = true;
    EXPECT_LT(figures_of(scenario).tensor_exchange_time, apart * 0.9);
  }
}

Scenario failing(double tokens) {
  Scenario scenario = training();
  scenario.train.tokens = tokens;
  scenario.train.device_mtbf = Seconds{1e4};
  scenario.train.checkpoint_bandwidth = BytesPerSecond{1e10};
  scenario.train.restart_time = Seconds{10};
  return scenario;
}

// A whole run that is done again after each failure is the worst: no interval is longer than the work.
TEST(Checkpoints, CannotBeFartherApartThanARunIsLong) {
  Scenario scenario = failing(1e7);
  Scenario sure = scenario;
  sure.train.device_mtbf = Seconds{0};
  const double work = figures_of(sure).run_time.value;
  const double between = scenario.train.device_mtbf.value;
  const double whole =
      between * std::exp(scenario.train.restart_time.value / between) * std::expm1(work / between);
  for (const double interval : {1.0, 10.0, 1e4}) {
    scenario.train.checkpoint_interval = Seconds{interval * work};
    const Metrics figures = figures_of(scenario);
    EXPECT_NEAR(figures.run_time.value / whole, 1, 1e-9) << interval;
    EXPECT_NEAR(figures.checkpoint_every.value / work, 1, 1e-9) << interval;
  }
  // The best interval is no worse than none.
  scenario.train.checkpoint_interval = Seconds{0};
  EXPECT_LE(figures_of(scenario).run_time.value, whole * (1 + 1e-9));
}

TEST(Jitter, MakesRunsOfMeansNotMedians) {
  Scenario scenario = training();
  scenario.parallel.dp = 8;
  scenario.train.tokens = 1e9;
  const Metrics even = figures_of(scenario);
  scenario.train.jitter = 0.3;
  const Metrics figures = figures_of(scenario);
  const double steps = even.run_time / even.iteration_time;
  EXPECT_GT(figures.run_time, figures.iteration_time_p50 * steps);
  EXPECT_LT(figures.run_time, figures.iteration_time_p95 * steps);
}

// Whatever a step waits for is in its time, its rate and its utilizations alike.
TEST(Jitter, IsInEveryFigureOfASpeed) {
  Scenario scenario = training();
  scenario.parallel.dp = 8;
  scenario.train.tokens = 1e9;
  const Metrics even = figures_of(scenario);
  scenario.train.jitter = 0.1;
  scenario.train.link_jitter = 0.5;
  const Metrics figures = figures_of(scenario);
  const double longer = figures.iteration_time / even.iteration_time;
  EXPECT_GT(longer, 1.1);
  EXPECT_NEAR(figures.run_tokens / figures.run_time.value / figures.tokens_per_s, 1, 1e-12);
  EXPECT_NEAR(figures.run_time / even.run_time, longer, 1e-9);
  EXPECT_NEAR(even.tokens_per_s / figures.tokens_per_s, longer, 1e-9);
  EXPECT_NEAR(even.total / figures.total, longer, 1e-9);
  EXPECT_NEAR(even.model_flops_utilization / figures.model_flops_utilization, longer, 1e-9);
  EXPECT_NEAR(figures.iteration_time_high / even.iteration_time_high, longer, 1e-9);
}

TEST(PackedDocuments, NeverSeeMoreThanOneThatFillsTheSequence) {
  Scenario scenario = training();
  const Metrics one = figures_of(scenario);
  for (const std::int64_t length : {256, 1000, 1024, 5000}) {
    Seconds before{0};
    for (const double cv : {0.0, 0.5, 1.0, 3.0, 1e3}) {
      scenario.train.document_length = length;
      scenario.train.document_cv = cv;
      const Metrics packed = figures_of(scenario);
      EXPECT_LE(packed.attention_time.value, one.attention_time.value * (1 + 1e-9))
          << length << " " << cv;
      // Short documents that differ more see more.
      if (length == 256 && cv < 0.9) {
        EXPECT_GE(packed.attention_time, before);
      }
      before = packed.attention_time;
    }
  }
}

TEST(PackedDocuments, AWindowLongerThanASequenceCutsNothing) {
  Scenario scenario = training();
  scenario.train.document_length = 256;
  for (const double cv : {0.0, 0.5, 2.0}) {
    scenario.train.document_cv = cv;
    scenario.model.window = 0;
    const Seconds without = figures_of(scenario).attention_time;
    scenario.model.window = 2 * scenario.train.sequence;
    EXPECT_NEAR(figures_of(scenario).attention_time / without, 1, 1e-9) << cv;
    Seconds before{0};
    for (const std::int64_t window : {64, 128, 256, 512, 1024}) {
      scenario.model.window = window;
      const Seconds time = figures_of(scenario).attention_time;
      EXPECT_GE(time, before) << cv << " " << window;
      EXPECT_LE(time.value, without.value * (1 + 1e-9)) << cv << " " << window;
      before = time;
    }
  }
}

TEST(PackedDocuments, AWindowSeesWhatDrawnLengthsLeave) {
  // Lognormal lengths in equal steps of probability.
  TrainSettings train;
  train.sequence = 8192;
  train.document_length = 1000;
  train.document_cv = 1.5;
  const double variance = std::log1p(1.5 * 1.5);
  for (const double window : {0.0, 300.0, 1000.0, 4000.0, 9000.0}) {
    double pairs = 0, tokens = 0;
    constexpr int kLengths = 20000;
    for (int i = 0; i < kLengths; ++i) {
      const double drawn =
          1000 *
          std::exp(std::sqrt(variance) * normal_quantile((i + 0.5) / kLengths) - variance / 2);
      const double length = std::min(drawn, 8192.0);
      pairs += length * length_of_equal(length, window);
      tokens += length;
    }
    EXPECT_NEAR(length_around_a_token(train, window) / (pairs / tokens), 1, 2e-3) << window;
  }
}

TEST(Muon, MultipliesItsMatrices) {
  const auto update = [](Optimizer optimizer, std::int64_t zero) {
    Scenario scenario = training();
    scenario.parallel.dp = 4;
    scenario.train.zero = zero;
    scenario.train.optimizer = optimizer;
    return figures_of(scenario).optimizer_time;
  };
  for (const std::int64_t zero : {0, 1}) {
    EXPECT_GT(update(Optimizer::muon, zero), update(Optimizer::adamw, zero)) << zero;
  }
  // Beside passes over states, as SGD with momentum has them: products, which replicas share out.
  const Seconds whole = update(Optimizer::muon, 0) - update(Optimizer::sgd, 0);
  const Seconds shared = update(Optimizer::muon, 1) - update(Optimizer::sgd, 1);
  EXPECT_NEAR(whole / shared, 4, 1e-6);
}

TEST(Adapters, StandBesideSomething) {
  Scenario scenario = training();
  scenario.train.method = Method::lora;
  scenario.train.lora_rank = scenario.model.hidden + 1;
  EXPECT_EQ(evaluate(scenario).reason,
            "train.lora_rank 4097 exceeds the width of products, model.hidden 4096");
  scenario = training();
  scenario.model = toys::mixture();
  scenario.model.moe.shared_intermediate = 0;
  scenario.train.method = Method::lora;
  scenario.train.lora_targets = LoraTargets::mlp;
  EXPECT_EQ(evaluate(scenario).reason,
            "train.lora_targets mlp: all layers of this model have routed experts, which have no "
            "adapters");
}

// Without chunks to interleave a schedule keeps what it keeps.
TEST(Interleaving, OneChunkIsNothingToInterleave) {
  Scenario scenario = training();
  scenario.parallel.pp = 2;
  const Metrics plain = figures_of(scenario);
  scenario.train.schedule = Schedule::interleaved;
  const Metrics named = figures_of(scenario);
  EXPECT_EQ(named.iteration_time, plain.iteration_time);
  EXPECT_EQ(named.peak_memory, plain.peak_memory);
}

TEST(StateFormats, ThatLeaveOutWhatIsNeededAreRefused) {
  Scenario scenario = training();
  scenario.train.gradients = StateFormat::none;
  EXPECT_EQ(evaluate(scenario).reason,
            "train.gradients none: gradients are summed up in some format, fp32 or bf16");
  scenario = training();
  scenario.train.moments = StateFormat::none;
  EXPECT_EQ(evaluate(scenario).reason,
            "train.moments none: adamw follows from what it remembers of past gradients");
  scenario.train.optimizer = Optimizer::sgd;
  EXPECT_EQ(evaluate(scenario).status, Status::ok);
}

}  // namespace
}  // namespace engine

// A scan carries a state of one size from token to token: what it takes and keeps does not grow with the context.
#include <gtest/gtest.h>

#include <string>

#include "engine/evaluate.h"
#include "engine/memory/footprint.h"
#include "tests/support/calibrations.h"
#include "tests/support/hybrid_toy.h"
#include "tests/support/shipped.h"

namespace engine {
namespace {

using toys::hybrid;

Outcome outcome_of(const Scenario& point) { return evaluate(point, toys::transfer_resources()); }

double step_time(const Scenario& point) {
  const Outcome outcome = outcome_of(point);
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome.metrics.step_time.value;
}

TEST(ScanLaws, WithoutAttentionAContextTakesNothing) {
  Scenario point = hybrid();
  point.model.scan.attention_layers = 0;
  point.step.context = 100;
  const double soon = step_time(point), used = outcome_of(point).metrics.kv_cache.value;
  point.step.context = 200'000;
  EXPECT_DOUBLE_EQ(step_time(point), soon);
  EXPECT_DOUBLE_EQ(outcome_of(point).metrics.kv_cache.value, used);
}

TEST(ScanLaws, LayersThatAttendMakeContextsCount) {
  double last = 0;
  for (const std::int64_t attending : {0, 3, 8, 16, 32}) {
    Scenario point = hybrid();
    point.model.scan.attention_layers = attending;
    point.step.context = 1'000;
    const double soon = step_time(point);
    point.step.context = 40'000;
    const double later = step_time(point) - soon;
    EXPECT_GE(later, last) << attending;
    last = later;
  }
  EXPECT_GT(last, 0);
}

// 29 layers of 128 x 64 x 128 numbers in 32 bits and of three inputs of 8,448 channels in 16 bits; three layers keep
// 2 x 8 x 128 numbers a token in 16 bits.
TEST(ScanLaws, ASequenceKeepsItsStatesAndTheKeysOfFewLayers) {
  Scenario point = hybrid();
  const auto kept = [&point](std::int64_t tp, double context) {
    point.parallel.tp = tp;
    return kv_bytes(shard_of(point.model, point.parallel, point.quant), context).value;
  };
  const double states = 29 * (128.0 * 64 * 128 * 4 + 8448.0 * 3 * 2);
  EXPECT_DOUBLE_EQ(kept(1, 0), states);
  EXPECT_DOUBLE_EQ(kept(1, 1000) - kept(1, 0), 3 * 2 * 8 * 128 * 2 * 1000.0);
  // Heads are shared out; what all of them are written by is repeated.
  EXPECT_DOUBLE_EQ(kept(4, 0), 29 * (32.0 * 64 * 128 * 4 + (32.0 * 64 + 256) * 3 * 2));
  // A narrow KV cache does not narrow the state.
  point.quant.kv = Dtype::fp8;
  EXPECT_DOUBLE_EQ(kept(1, 0), states);
}

TEST(ScanLaws, ALargerStateIsNeverFaster) {
  double last = 0;
  for (const std::int64_t state : {16, 64, 128, 256}) {
    Scenario point = hybrid();
    point.model.scan.state = state;
    for (const StepPhase phase : {StepPhase::decode, StepPhase::prefill}) {
      point.step.phase = phase;
      point.step.prompt = 3'000;
      EXPECT_GT(step_time(point), 0);
    }
    point.step.phase = StepPhase::decode;
    EXPECT_GT(step_time(point), last) << state;
    last = step_time(point);
  }
}

TEST(ScanLaws, DevicesShareALayer) {
  Scenario point = hybrid();
  const double alone = step_time(point);
  point.cluster = toys::shipped("clusters", "dgx-h100").cluster;
  point.parallel.tp = 4;
  EXPECT_LT(step_time(point), alone);
  point.parallel.tp = 3;
  EXPECT_EQ(outcome_of(point).status, Status::infeasible);
}

TEST(ScanLaws, ALoadOfOneRequestIsThatRequest) {
  Scenario alone = hybrid();
  alone.task = Task::request;
  alone.request.batch = 1;
  alone.request.output = 40;
  for (const std::int64_t prompt : {300, 1'000, 1'800}) {
    alone.request.prompt = prompt;
    Scenario served = alone;
    served.task = Task::serve;
    served.load = {};
    served.load.arrivals = ArrivalKind::closed;
    served.load.clients = served.load.requests = 1;
    served.load.measure = MeasureKind::whole;
    served.load.lengths = {.prompt = prompt, .output = 40};
    const Outcome one = outcome_of(alone), other = outcome_of(served);
    ASSERT_EQ(one.status, Status::ok) << one.reason;
    ASSERT_EQ(other.status, Status::ok) << other.reason;
    EXPECT_NEAR(other.metrics.ttft / one.metrics.ttft, 1, 0.02) << prompt;
    EXPECT_NEAR(other.metrics.tpot / one.metrics.tpot, 1, 0.02) << prompt;
  }
}

// However short sequences are: a state is there from the first token on.
TEST(ScanLaws, NoMoreSequencesRunThanHaveRoomForTheirStates) {
  for (const std::int64_t attending : {0, 3, 16}) {
    Scenario point = hybrid();
    point.model.scan.attention_layers = attending;
    point.step.context = 72;
    const double fit = outcome_of(point).metrics.max_batch;
    point.task = Task::serve;
    point.serving.max_num_seqs = 4096;
    point.load.arrivals = ArrivalKind::closed;
    point.load.clients = std::int64_t(2 * fit);
    point.load.requests = std::int64_t(6 * fit);
    point.load.lengths = {.prompt = 32, .output = 40};
    const Outcome outcome = outcome_of(point);
    ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
    EXPECT_LE(outcome.metrics.batch_mean, fit) << attending;
    EXPECT_GT(outcome.metrics.batch_mean, 0.8 * fit) << attending;
  }
}

// Seven clients, each always with a request of 300 to 500 tokens inside: what is in use does not change much.
TEST(ScanLaws, StatesAreInUseAsTokensAre) {
  Scenario point = hybrid();
  point.task = Task::serve;
  point.serving.kv_blocks = 5000;
  point.load.arrivals = ArrivalKind::closed;
  point.load.clients = 7;
  point.load.requests = 300;
  point.load.lengths = {.distribution = LengthKind::fixed, .prompt = 300, .output = 200};
  const Outcome outcome = outcome_of(point);
  ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
  EXPECT_LE(outcome.metrics.kv_use, outcome.metrics.kv_peak);
  EXPECT_GT(outcome.metrics.kv_use, 0.9 * outcome.metrics.kv_peak);
  // Where a state does not fit, the row says so.
  point.serving.kv_blocks = 300;
  const Outcome none = outcome_of(point);
  EXPECT_EQ(none.status, Status::infeasible);
  EXPECT_NE(none.reason.find("they have 500 tokens on average and a state as large as"),
            std::string::npos)
      << none.reason;
}

// Blocks that are stated hold states, too.
TEST(ScanLaws, AsManySequencesFitIntoStatedBlocks) {
  for (const std::int64_t attending : {0, 3, 16}) {
    Scenario point = hybrid();
    point.model.scan.attention_layers = attending;
    point.task = Task::serve;
    point.load.requests = 20;
    point.load.lengths = {.distribution = LengthKind::fixed, .prompt = 300, .output = 200};
    const Metrics all = outcome_of(point).metrics;
    for (const double part : {1.0, 0.5}) {
      point.serving.kv_blocks = std::int64_t(part * all.kv_blocks);
      const Metrics some = outcome_of(point).metrics;
      // States are counted in whole blocks.
      EXPECT_NEAR(some.max_batch / all.max_batch, part, 0.01) << attending;
      EXPECT_NEAR(some.kv_capacity_tokens / all.kv_capacity_tokens, part, 0.01) << attending;
    }
  }
}

// A cache that is to be half full holds states, too.
TEST(ScanLaws, AShareOfTheCacheCountsStates) {
  Scenario point = hybrid();
  point.task = Task::serve;
  point.load.arrivals = ArrivalKind::closed;
  point.load.kv_fraction = 0.5;
  point.load.requests = 600;
  point.load.lengths = {.distribution = LengthKind::fixed, .prompt = 300, .output = 200};
  const Outcome outcome = outcome_of(point);
  ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
  EXPECT_NEAR(outcome.metrics.kv_use, 0.5, 0.1);
}

// Layers that are a scan alone: no MLP, no kernels of one, and the published size.
TEST(ScanLaws, LayersOfAScanAloneHaveNothingElse) {
  Scenario point = hybrid();
  point.model = toys::shipped("models", "mamba-codestral-7b").model;
  const Outcome outcome = outcome_of(point);
  ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
  EXPECT_NEAR(outcome.metrics.parameters, 7.285e9, 0.01e9);
  for (const KernelRow& row : outcome.kernels) {
    EXPECT_NE(row.op, OpName::gate_up);
    EXPECT_NE(row.op, OpName::activation);
    EXPECT_NE(row.op, OpName::down);
  }
}

Scenario trained_hybrid() {
  Scenario point = hybrid();
  point.task = Task::train;
  point.device.memory_capacity = Bytes{1e13};
  point.model.max_context = 0;
  point.train = {.sequence = 4096, .micro_batch = 1, .global_batch = 4};
  return point;
}
Metrics trained(const Scenario& point) {
  const Outcome outcome = outcome_of(point);
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome.metrics;
}

// Long sequences cost a token of layers that scan no more than short ones, and of layers that attend ever more.
TEST(ScanLaws, TrainingTakesATokenAsLongAtAnyLength) {
  Scenario point = trained_hybrid();
  const auto of_a_token = [&](std::int64_t attending, std::int64_t length) {
    point.model.scan.attention_layers = attending;
    point.train.sequence = length;
    return 1 / trained(point).tokens_per_s;
  };
  EXPECT_NEAR(of_a_token(0, 65536) / of_a_token(0, 16384), 1, 0.05);
  EXPECT_GT(of_a_token(32, 65536) / of_a_token(32, 16384), 1.3);
}

// However layers are dealt out to stages, they are those of the model: weights, and work of the pipeline's stages together.
TEST(ScanLaws, StagesShareOutLayersOfAllKinds) {
  for (const char* model : {"bamba-9b", "nemotron-nano-9b-v2"}) {
    Scenario point = trained_hybrid();
    point.model = toys::shipped("models", model).model;
    const auto flops = [&](std::int64_t stages) {
      point.parallel.pp = stages;
      const Metrics figures = trained(point);
      return figures.model_flops_utilization * figures.iteration_time.value * double(stages);
    };
    const double alone = flops(1);
    for (const std::int64_t stages : {2, 4, 7}) EXPECT_NEAR(flops(stages) / alone, 1, 1e-3);
  }
}

// A layer without an MLP has the weights, the work and the activations of its mixer alone.
TEST(ScanLaws, LayersWithoutAnMlpAreTheirMixers) {
  Scenario point = trained_hybrid();
  const auto of = [&](std::int64_t mlps) {
    point.model.mlp_layers = mlps;
    return trained(point);
  };
  const Metrics all = of(32), half = of(16), one = of(1);
  const double mlp = 3 * 4096.0 * 14336 + 4096;
  EXPECT_NEAR((all.parameters - half.parameters) / (16 * mlp), 1, 1e-6);
  EXPECT_NEAR((half.parameters - one.parameters) / (15 * mlp), 1, 1e-6);
  EXPECT_NEAR(
      (all.iteration_time - half.iteration_time) / (half.iteration_time - one.iteration_time),
      16.0 / 15, 0.01);
  EXPECT_NEAR((all.kept_activation_memory - half.kept_activation_memory) /
                  (half.kept_activation_memory - one.kept_activation_memory),
              16.0 / 15, 1e-6);
}

TEST(ScanLaws, NemotronsHaveTheirPublishedSizes) {
  EXPECT_NEAR(parameter_counts(toys::shipped("models", "nemotron-3-nano-30b-a3b").model).total(),
              31.6e9, 0.05e9);
  EXPECT_NEAR(parameter_counts(toys::shipped("models", "nemotron-nano-9b-v2").model).total(), 8.9e9,
              0.05e9);
}

TEST(ScanLaws, NoMoreLayersAttendThanThereAre) {
  Scenario point = hybrid();
  point.model.scan.attention_layers = 40;
  EXPECT_EQ(outcome_of(point).reason, "model.scan.attention_layers 40 exceeds model.layers 32");
}

}  // namespace
}  // namespace engine

// Hybrids of delta rules and attention (Qwen3-Next, Kimi Linear): a state of one size, gates, and what they cost.
#include <gtest/gtest.h>

#include <string>

#include "engine/evaluate.h"
#include "engine/memory/footprint.h"
#include "tests/support/calibrations.h"
#include "tests/support/shipped.h"

namespace engine {
namespace {

constexpr const char* kDeltas[] = {"qwen3-next-80b-a3b", "kimi-linear-48b-a3b", "qwen3.5-27b"};

// On one device that everything fits on, without a host.
Scenario delta(const char* model) {
  Scenario point = toys::shipped("models", model);
  point.device = toys::shipped("devices", "h200-sxm").device;
  point.device.memory_capacity = Bytes{1e12};
  point.host = toys::shipped("hosts", "none").host;
  point.calibration.tier = TierChoice::transfer;
  point.step.batch = 8;
  return point;
}

Outcome outcome_of(const Scenario& point) {
  Outcome outcome = evaluate(point, toys::transfer_resources());
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome;
}
double step_time(const Scenario& point) { return outcome_of(point).metrics.step_time.value; }

Work work_of(const Scenario& point, OpName name) {
  Work work;
  for (const KernelRow& row : outcome_of(point).kernels) {
    if (row.op == name) work.add(row.work, 1);
  }
  return work;
}

double kept(const Scenario& point, double context) {
  return kv_bytes(shard_of(point.model, point.parallel, point.quant), context).value;
}

Scenario prompts(const char* model, std::int64_t sequences, std::int64_t tokens) {
  Scenario point = delta(model);
  point.step.phase = StepPhase::prefill;
  point.step.batch = sequences;
  point.step.prompt = tokens;
  return point;
}

// Those of the published files: all weights, and those without the experts that a token does not visit. Norms of heads are not counted.
TEST(DeltaLaws, ModelsHaveTheirPublishedSizes) {
  const ModelSpec qwen = toys::shipped("models", "qwen3-next-80b-a3b").model;
  EXPECT_NEAR(parameter_counts(qwen).total(), 79'674'391'296.0, 1e4);
  EXPECT_NEAR(active_parameters(qwen), 3'874'929'408.0, 1e4);
  const ModelSpec kimi = toys::shipped("models", "kimi-linear-48b-a3b").model;
  EXPECT_NEAR(parameter_counts(kimi).total(), 49.12e9, 0.01e9);
  // Without embeddings and logits.
  EXPECT_NEAR(active_parameters(kimi) - 2 * 163840.0 * 2304, 2.8e9, 0.1e9);
  EXPECT_NEAR(parameter_counts(toys::shipped("models", "qwen3.5-27b").model).total(), 26.9e9,
              0.1e9);
}

// 36 layers of 32 x 128 x 128 numbers in 32 bits and three inputs of 8,192 channels in 16 bits; 12 layers keep 2 x 2 x 256 numbers of
// a token in 16 bits.
TEST(DeltaLaws, ASequenceKeepsItsStatesAndTheKeysOfFewLayers) {
  Scenario point = delta("qwen3-next-80b-a3b");
  const double inputs = 36 * 8192.0 * 3 * 2;
  EXPECT_DOUBLE_EQ(kept(point, 0), 36 * 32.0 * 128 * 128 * 4 + inputs);
  EXPECT_DOUBLE_EQ(kept(point, 1000) - kept(point, 0), 12 * 2 * 2 * 256 * 2 * 1000.0);
  point.quant.state = Dtype::bf16;
  EXPECT_DOUBLE_EQ(kept(point, 0), 36 * 32.0 * 128 * 128 * 2 + inputs);
  // Latents of seven layers, and keys of every head of their own.
  point = delta("kimi-linear-48b-a3b");
  EXPECT_DOUBLE_EQ(kept(point, 0), 20 * (32.0 * 128 * 128 * 4 + 3 * 4096.0 * 3 * 2));
  EXPECT_DOUBLE_EQ(kept(point, 1000) - kept(point, 0), 7 * 576 * 2 * 1000.0);
}

TEST(DeltaLaws, LayersThatScanTakeAsLongAtAnyContext) {
  for (const char* model : kDeltas) {
    Scenario point = delta(model);
    point.step.context = 1'000;
    const Work soon = work_of(point, OpName::scan);
    const double step = step_time(point);
    point.step.context = 200'000;
    EXPECT_DOUBLE_EQ(work_of(point, OpName::scan).time.value, soon.time.value) << model;
    EXPECT_GT(step_time(point), step) << model;
    point.model.scan.attention_layers = 0;
    const double late = step_time(point);
    point.step.context = 1'000;
    EXPECT_DOUBLE_EQ(step_time(point), late) << model;
  }
}

TEST(DeltaLaws, NarrowStatesAreReadFaster) {
  for (const char* model : kDeltas) {
    Scenario point = delta(model);
    point.step.batch = 128;
    const Work wide = work_of(point, OpName::scan);
    point.quant.state = Dtype::bf16;
    const Work narrow = work_of(point, OpName::scan);
    EXPECT_LT(narrow.time, wide.time) << model;
    EXPECT_NEAR(narrow.bytes / wide.bytes, 0.5, 0.02) << model;
  }
}

TEST(DeltaLaws, FasterDevicesAreNeverSlower) {
  for (const char* model : kDeltas) {
    for (const Scenario& point : {delta(model), prompts(model, 1, 9'000), prompts(model, 6, 700)}) {
      const double before = step_time(point);
      Scenario faster = point;
      faster.device.memory_bandwidth = point.device.memory_bandwidth * 2;
      EXPECT_LE(step_time(faster), before) << model;
      faster = point;
      faster.device.clock = point.device.clock * 1.1;
      EXPECT_LE(step_time(faster), before) << model;
    }
  }
}

// A chunk needs the state of the one before it, so half of the heads take more than half of the time, and the same tokens of few heads
// longer as one prompt than as several. Many heads keep the device busy meanwhile.
TEST(DeltaLaws, ChunksOfAPromptGoOneAfterAnother) {
  const auto time = [](const char* model, std::int64_t sequences, std::int64_t part) {
    Scenario point = prompts(model, sequences, 16'384 / sequences);
    point.model.scan.heads /= part;
    point.model.scan.groups /= part;
    return work_of(point, OpName::scan).time;
  };
  for (const char* model : kDeltas) {
    EXPECT_GE(time(model, 1, 1), time(model, 4, 1)) << model;
    EXPECT_GT(time(model, 1, 4), time(model, 4, 4)) << model;
    for (const std::int64_t part : {1, 2, 4}) {
      const Seconds whole = time(model, 1, part), half = time(model, 1, 2 * part);
      EXPECT_LT(half, whole) << model << part;
      EXPECT_GT(half / whole, 0.5) << model << part;
    }
  }
}

// A prompt twice as long takes layers that scan twice as long, in the limit.
// Short prompts of many sequences read and write states for longer than they compute, and chunks wait for one another beside
// that as well.
TEST(DeltaLaws, FasterUnitsNeverSlowAShortScan) {
  for (const char* model : kDeltas) {
    double before = 1e9;
    for (const double factor : {0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0}) {
      Scenario point = prompts(model, 8, 128);
      point.device.peak.bf16 = point.device.peak.bf16 * factor;
      const double time = work_of(point, OpName::scan).time.value;
      EXPECT_LE(time, before * (1 + 1e-9)) << model << " " << factor;
      before = time;
    }
  }
}

TEST(DeltaLaws, PromptsTakeTheirLength) {
  for (const char* model : kDeltas) {
    const Seconds once = work_of(prompts(model, 1, 16'384), OpName::scan).time;
    const Seconds twice = work_of(prompts(model, 1, 32'768), OpName::scan).time;
    EXPECT_NEAR(twice / once, 2, 0.05) << model;
  }
}

TEST(DeltaLaws, DevicesShareALayer) {
  for (const char* model : kDeltas) {
    Scenario point = delta(model);
    const Outcome alone = outcome_of(point);
    point.cluster = toys::shipped("clusters", "dgx-h100").cluster;
    point.parallel.tp = 4;
    const Outcome shared = outcome_of(point);
    EXPECT_LT(shared.metrics.step_time, alone.metrics.step_time) << model;
    // Ranks of gates, and keys of groups that are fewer than devices, are repeated.
    EXPECT_GE(4 * shared.metrics.weights.value, alone.metrics.weights.value) << model;
    EXPECT_LT(4 * shared.metrics.weights.value, 1.02 * alone.metrics.weights.value) << model;
  }
}

TEST(DeltaLaws, GatesAreAWiderProjectionAndAPass) {
  Scenario point = delta("qwen3.5-27b");
  const Outcome with = outcome_of(point);
  point.model.attention_gate = false;
  const Outcome without = outcome_of(point);
  EXPECT_DOUBLE_EQ(with.metrics.parameters - without.metrics.parameters, 16 * 5120.0 * 24 * 256);
  EXPECT_GT(with.metrics.step_time, without.metrics.step_time);
  point = delta("qwen3-next-80b-a3b");
  const double gated = outcome_of(point).metrics.parameters, slower = step_time(point);
  point.model.moe.shared_gate = false;
  EXPECT_DOUBLE_EQ(gated - outcome_of(point).metrics.parameters, 48 * 2048.0);
  EXPECT_GT(slower, step_time(point));
}

TEST(DeltaLaws, TurningLessOfAHeadIsNeverSlower) {
  for (const char* model : kDeltas) {
    double last = 0;
    for (const double share : {0.0, 0.25, 1.0}) {
      Scenario point = prompts(model, 1, 9'000);
      point.model.rotary_share = share;
      EXPECT_GT(step_time(point), last) << model;
      last = step_time(point);
    }
  }
}

// Both rules carry the same state, and one of them multiplies more.
TEST(DeltaLaws, ARuleThatTakesBackComputesMore) {
  Scenario point = prompts("qwen3-next-80b-a3b", 1, 9'000);
  const Work takes_back = work_of(point, OpName::scan);
  const double kept_by_delta = kept(point, 0);
  point.model.scan.rule = ScanRule::add;
  EXPECT_GT(takes_back.flops, work_of(point, OpName::scan).flops * 0.9);
  EXPECT_GT(takes_back.time, work_of(point, OpName::scan).time);
  EXPECT_DOUBLE_EQ(kept(point, 0), kept_by_delta);
}

Scenario trained(const char* model) {
  Scenario point = delta(model);
  point.task = Task::train;
  point.device.memory_capacity = Bytes{1e13};
  point.model.max_context = 0;
  point.train = {.sequence = 4096, .micro_batch = 1, .global_batch = 2};
  return point;
}

// Each weight that a token meets is multiplied once forward and twice backward, and scans come on top. A table is looked up.
TEST(DeltaLaws, TrainingComputesAtLeastTheModel) {
  for (const char* model : kDeltas) {
    const Scenario point = trained(model);
    const Metrics figures = outcome_of(point).metrics;
    const double met = active_parameters(point.model) - parameter_counts(point.model).embedding;
    const double peak = matrix_peak(point.device, Dtype::bf16).value;
    const double flops = figures.model_flops_utilization * peak * figures.iteration_time.value;
    EXPECT_GT(flops, 6 * met * 2 * 4096) << model;
    EXPECT_LT(flops, 9 * met * 2 * 4096) << model;
    EXPECT_GE(figures.hardware_flops_utilization, figures.model_flops_utilization) << model;
  }
}

TEST(DeltaLaws, TrainingTakesAsLongAtAnyLength) {
  for (const char* model : kDeltas) {
    Scenario point = trained(model);
    point.model.scan.attention_layers = 0;
    // As many tokens in a pass, and in a step.
    const auto of_a_step = [&](std::int64_t length) {
      point.train.sequence = length;
      point.train.micro_batch = point.train.global_batch = 65'536 / length;
      return outcome_of(point).metrics.iteration_time;
    };
    EXPECT_NEAR(of_a_step(65'536) / of_a_step(16'384), 1, 0.05) << model;
  }
}

// In one step, or in several where a prompt is longer than a step.
TEST(DeltaLaws, ALoadOfOneRequestIsThatRequest) {
  for (const char* model : kDeltas) {
    for (const std::int64_t prompt : {300, 9'000, 60'000}) {
      Scenario alone = delta(model);
      alone.task = Task::request;
      alone.request = {.batch = 1, .prompt = prompt, .output = 40};
      Scenario served = alone;
      served.task = Task::serve;
      served.load.arrivals = ArrivalKind::closed;
      served.load.clients = served.load.requests = 1;
      served.load.measure = MeasureKind::whole;
      served.load.lengths = {.prompt = prompt, .output = 40};
      const Metrics one = outcome_of(alone).metrics, other = outcome_of(served).metrics;
      EXPECT_NEAR(other.ttft / one.ttft, 1, 0.02) << model << ' ' << prompt;
      EXPECT_NEAR(other.tpot / one.tpot, 1, 0.02) << model << ' ' << prompt;
    }
  }
}

// Prefixes, proposals and prompts that others read: states go where those of other scans do.
TEST(DeltaLaws, StatesAreCachedVerifiedAndCarried) {
  for (const char* model : kDeltas) {
    Scenario point = delta(model);
    point.task = Task::serve;
    point.load.turns = 4;
    point.load.think_time = Seconds{2};
    point.load.rate = RequestsPerSecond{1};
    point.load.requests = 120;
    // Of a short run other parts are measured where answers take less time.
    point.load.measure = MeasureKind::whole;
    point.load.lengths = {.distribution = LengthKind::fixed, .prompt = 1500, .output = 50};
    const Metrics plain = outcome_of(point).metrics;
    Scenario cached = point;
    cached.serving.prefix_caching = true;
    EXPECT_GT(outcome_of(cached).metrics.prefix_hit_rate, 0.5) << model;
    EXPECT_LT(outcome_of(cached).metrics.ttft, plain.ttft) << model;
    Scenario proposing = point;
    proposing.speculation = {.method = SpeculationMethod::mtp, .tokens = 2, .acceptance = "1"};
    EXPECT_LT(outcome_of(proposing).metrics.tpot, plain.tpot) << model;
    Scenario read = point;
    read.prefill.present = true;
    fill_roles(read);
    EXPECT_GT(outcome_of(read).metrics.transfer_share, 0) << model;
  }
}

TEST(DeltaLaws, WhatIsNotModelledIsRefused) {
  const auto reason = [](const Scenario& point) {
    return evaluate(point, toys::transfer_resources()).reason;
  };
  Scenario point = delta("kimi-linear-48b-a3b");
  point.model.attention_gate = true;
  EXPECT_EQ(
      reason(point),
      "model.attention_gate is not modelled with latent attention (model.mla.kv_rank above 0)");
  point = delta("qwen3-next-80b-a3b");
  point.model.scan.groups = 24;
  EXPECT_EQ(reason(point), "model.scan.heads 32 is not a multiple of model.scan.groups 24");
}

}  // namespace
}  // namespace engine

// Stages of a pipeline on two kinds of devices, and attention's kernels of earlier generations.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <vector>

#include "engine/evaluate.h"
#include "engine/training/pipeline/stages.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"
#include "tests/support/training_toy.h"

namespace engine {
namespace {

using toys::figures_of;

// So many stages, the last ones of them in a deployment of their own with the same devices.
Scenario in_two_pools(std::int64_t stages, std::int64_t last) {
  Scenario scenario = toys::training();
  scenario.parallel = {.tp = 2, .pp = stages - last, .dp = 2};
  if (last == 0) return scenario;
  scenario.tail.present = true;
  scenario.tail.deployment = scenario;
  scenario.tail.deployment.parallel.pp = last;
  return scenario;
}

// As many chunks as layers and two more: the embedding and the logits have their own. Every layer has its chunk, and a step does the
// same work.
TEST(Stages, EndsMayBeChunksOfTheirOwn) {
  Scenario scenario = toys::training();
  scenario.parallel.pp = 2;
  scenario.train.schedule = Schedule::interleaved;
  const std::int64_t layers = scenario.model.layers;
  const double alike = figures_of(scenario).forward_time.value;
  std::vector<LayerChunk> cut;
  for (const std::int64_t chunks : {layers, layers + 2}) {
    cut_into_chunks(scenario.model, scenario.train, {.all = chunks, .stages = 2}, cut);
    std::int64_t all = 0;
    for (const LayerChunk& chunk : cut) all += chunk.span.layers.all();
    EXPECT_EQ(all, layers);
    EXPECT_EQ(cut.front().span.layers.all(), chunks > layers ? 0 : 1);
    scenario.train.virtual_stages = chunks / 2;
    EXPECT_NEAR(figures_of(scenario).forward_time.value / alike, 1, 0.01) << chunks;
  }
  scenario.train.virtual_stages += 1;
  EXPECT_EQ(evaluate(scenario).status, Status::infeasible);
}

TEST(TailStages, OnEqualDevicesChangeNothing) {
  for (const Schedule schedule :
       {Schedule::gpipe, Schedule::one_f_one_b, Schedule::interleaved, Schedule::zero_bubble}) {
    for (const std::int64_t zero : {0, 1, 3}) {
      const auto with_tail = [&](std::int64_t last) {
        Scenario scenario = in_two_pools(4, last);
        scenario.train.schedule = schedule;
        if (schedule == Schedule::interleaved) scenario.train.virtual_stages = 2;
        scenario.train.zero = zero;
        return evaluate(scenario);
      };
      const Outcome whole = with_tail(0);
      ASSERT_EQ(whole.status, Status::ok) << whole.reason;
      for (const std::int64_t last : {1, 2, 3}) {
        const Outcome parted = with_tail(last);
        EXPECT_EQ(parted.metrics.iteration_time, whole.metrics.iteration_time) << last;
        EXPECT_EQ(parted.metrics.bubble_time, whole.metrics.bubble_time);
        EXPECT_EQ(parted.metrics.peak_memory, whole.metrics.peak_memory);
        EXPECT_EQ(parted.metrics.devices, whole.metrics.devices);
        EXPECT_EQ(parted.metrics.rent, whole.metrics.rent);
        EXPECT_EQ(parted.metrics.model_flops_utilization, whole.metrics.model_flops_utilization);
        EXPECT_EQ(parted.kernels, whole.kernels);
      }
    }
  }
}

std::vector<LayerChunk> cut(std::int64_t layers, std::int64_t stages, std::int64_t turns,
                            const TrainSettings& train) {
  ModelSpec model = toys::model();
  model.layers = layers;
  std::vector<LayerChunk> chunks;
  cut_into_chunks(model, train, {.all = stages * turns, .stages = stages}, chunks);
  return chunks;
}

// Which layers have experts, attend to a window or scan is a matter of their numbers, whatever chunk they lie in: chunks of one layer
// add up to those of many, and the model's own counts are those of all.
TEST(Stages, LayersAreTheSameHoweverTheyAreCut) {
  for (const std::int64_t layers : {7, 24, 61}) {
    for (const std::int64_t every : {1, 2, 3}) {
      ModelSpec model = toys::model();
      model.layers = layers;
      model.moe = {.experts = 8, .top_k = 2, .intermediate = 64, .first_dense_layers = 3};
      model.moe.every = every;
      model.window = 512;
      model.full_attention_every = every + 1;
      const TrainSettings train{.method = Method::last_layers, .trained_layers = layers / 3};
      std::vector<LayerChunk> one, cut;
      cut_into_chunks(model, train, {.all = layers, .stages = layers}, one);
      for (const std::int64_t chunks : {std::int64_t{1}, std::int64_t{2}, std::int64_t{5}}) {
        cut_into_chunks(model, train, {.all = chunks, .stages = chunks}, cut);
        std::size_t layer = 0;
        LayerCounts all;
        const auto add = [](const LayerCounts& more, LayerCounts& sum) {
          sum.dense += more.dense;
          sum.mixture += more.mixture;
          sum.full += more.full;
          sum.windowed += more.windowed;
          sum.scanning += more.scanning;
        };
        for (const LayerChunk& chunk : cut) {
          LayerCounts span, trained;
          for (std::int64_t i = chunk.span.layers.all(); i > 0; --i, ++layer) {
            add(one[layer].span.layers, span);
            add(one[layer].trained.layers, trained);
          }
          EXPECT_EQ(span, chunk.span.layers);
          EXPECT_EQ(trained, chunk.trained.layers);
          add(span, all);
        }
        EXPECT_EQ(all, layer_counts(model));
      }
    }
  }
}

// Llama 3 405B: 126 layers in 16 x 8 chunks; embedding and output take the place of a layer.
TEST(StatedEnds, LeaveRoomForEmbeddingAndOutput) {
  const auto chunks = cut(126, 16, 8, {.first_stage_layers = 7, .last_stage_layers = 7});
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const bool end = c == 0 || c + 1 == chunks.size();
    EXPECT_EQ(chunks[c].span.layers.all(), end ? 0 : 1) << c;
    EXPECT_TRUE(chunks[c].has_gradients());
  }
}

TEST(StatedEnds, AreWhatIsStated) {
  for (const std::int64_t turns : {1, 2, 3}) {
    for (const std::int64_t first : {0, 2, 3, 7}) {
      for (const std::int64_t last : {0, 2, 5}) {
        const auto chunks =
            cut(40, 4, turns, {.first_stage_layers = first, .last_stage_layers = last});
        std::int64_t of_stage[4] = {};
        for (std::size_t c = 0; c < chunks.size(); ++c) {
          of_stage[c % 4] += chunks[c].span.layers.all();
        }
        EXPECT_EQ(of_stage[0] + of_stage[1] + of_stage[2] + of_stage[3], 40);
        EXPECT_EQ(of_stage[0], first > 0 ? first : of_stage[0]);
        EXPECT_EQ(of_stage[3], last > 0 ? last : of_stage[3]);
      }
    }
  }
}

// A stage with as many layers as others is like them; one with fewer waits for them, and takes less memory.
TEST(StatedEnds, CountWhereTheyDiffer) {
  Scenario scenario = toys::training();
  scenario.model.layers = 16;
  scenario.parallel.pp = 4;
  const Outcome even = evaluate(scenario);
  scenario.train.first_stage_layers = scenario.train.last_stage_layers = 4;
  const Outcome stated = evaluate(scenario);
  EXPECT_EQ(stated.metrics.iteration_time, even.metrics.iteration_time);
  EXPECT_EQ(stated.metrics.peak_memory, even.metrics.peak_memory);
  EXPECT_EQ(stated.kernels, even.kernels);
  scenario.train.first_stage_layers = 2;
  scenario.train.last_stage_layers = 2;
  EXPECT_GT(figures_of(scenario).iteration_time, even.metrics.iteration_time);
}

// A stage of one end and no layers still has the end's passes, gradients and weights: the work of all stages is the model's.
TEST(StatedEnds, OfNoLayersHaveTheirEnd) {
  Scenario scenario = toys::training();
  scenario.model.layers = 14;
  scenario.parallel.pp = 4;
  scenario.train.schedule = Schedule::interleaved;
  scenario.train.virtual_stages = 2;
  const Metrics even = figures_of(scenario);
  scenario.train.virtual_stages = 4;
  scenario.train.first_stage_layers = scenario.train.last_stage_layers = 3;
  const Metrics uneven = figures_of(scenario);
  EXPECT_NEAR(uneven.model_flops_utilization * uneven.iteration_time.value /
                  (even.model_flops_utilization * even.iteration_time.value),
              1, 1e-9);
  EXPECT_EQ(uneven.trained_parameters, even.trained_parameters);
}

// A stage that takes twice as long sets the pace of all micro-batches.
TEST(TailStages, TheSlowestSetsThePace) {
  Scenario scenario = in_two_pools(4, 1);
  scenario.train.global_batch = 512;
  const Metrics equal = figures_of(scenario);
  Device& last = scenario.tail.deployment.device;
  last.peak.bf16 = last.peak.bf16 / 2;
  last.memory_bandwidth = last.memory_bandwidth / 2;
  last.l2_bandwidth = last.l2_bandwidth / 2;
  last.vector_peak = last.vector_peak / 2;
  last.launch_latency = last.launch_latency * 2;
  const Metrics slower = figures_of(scenario);
  EXPECT_GT(slower.iteration_time / equal.iteration_time, 1.5);
  EXPECT_LT(slower.iteration_time / equal.iteration_time, 2.1);
  // Fewer layers for it help.
  scenario.train.tail_layers = 1;
  EXPECT_LT(figures_of(scenario).iteration_time, slower.iteration_time);
}

// The point says of which stage its memory is, and fails where that stage's own devices are too small.
TEST(TailStages, FitTheirOwnDevices) {
  Scenario scenario = in_two_pools(4, 2);
  scenario.tail.deployment.device.memory_capacity = Bytes{5e11};  // half of the others'
  const Metrics fits = figures_of(scenario);
  EXPECT_GE(fits.peak_stage, 2);
  EXPECT_NEAR((fits.memory_used + fits.memory_free).value, 5e11, 1);
  scenario.tail.deployment.device.memory_capacity = fits.memory_used * 0.99;
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::infeasible);
  EXPECT_EQ(outcome.reason_class, ReasonClass::memory);
  EXPECT_TRUE(outcome.reason.starts_with(fmt::format("stage {:.0f} does not fit", fits.peak_stage)))
      << outcome.reason;
}

TEST(TailStages, ShareTheirWorkByTheirOwnTensorParallelism) {
  Scenario scenario = in_two_pools(4, 2);
  const Metrics alike = figures_of(scenario);
  scenario.tail.deployment.parallel.tp = 4;
  const Metrics wider = figures_of(scenario);
  EXPECT_EQ(wider.devices, alike.devices * 1.5);
  EXPECT_LE(wider.iteration_time, alike.iteration_time);
  EXPECT_NEAR(wider.trained_parameters / alike.trained_parameters, 1, 1e-12);
}

TEST(TailStages, SayWhatTheyCannotBe) {
  const auto reason_of = [](auto change) {
    Scenario scenario = in_two_pools(4, 2);
    change(scenario);
    return evaluate(scenario).reason;
  };
  EXPECT_EQ(reason_of([](Scenario& s) { s.tail.deployment.parallel.dp = 4; }),
            "tail.parallel.dp 4 differs from parallel.dp 2: all stages work on the same batch");
  EXPECT_EQ(reason_of([](Scenario& s) { s.train.tail_layers = 1; }),
            "train.tail_layers 1 leaves a stage without layers: 2 stages share 9 layers, and 2 of "
            "the tail share 1");
  EXPECT_EQ(reason_of([](Scenario& s) {
              s.train.tail_layers = 4;
              s.train.schedule = Schedule::interleaved;
              s.train.virtual_stages = 2;
            }),
            "train.tail_layers needs one chunk of layers on each stage, which the interleaved "
            "schedule does not have");
}

TEST(AttentionKernels, EarlierOnesTakeLonger) {
  Scenario scenario = toys::training();
  scenario.device = toys::shipped("devices", "h100-sxm").device;
  scenario.device.memory_capacity = Bytes{1e12};
  scenario.device.power_limit = Watts{0};  // else slower attention leaves more power to products
  scenario.train.sequence = 8192;
  scenario.model.max_context = 8192;
  const Metrics best = figures_of(scenario);
  Seconds before = best.attention_time;
  for (const AttentionGeneration kernels :
       {AttentionGeneration::flash_3, AttentionGeneration::flash_2, AttentionGeneration::triton,
        AttentionGeneration::flash_1}) {
    scenario.train.attention_kernel = kernels;
    const Metrics figures = figures_of(scenario);
    EXPECT_GE(figures.attention_time, before);
    // Nothing but attention changes.
    EXPECT_NEAR(((figures.iteration_time - best.iteration_time) -
                 (figures.attention_time - best.attention_time)) /
                    best.iteration_time,
                0, 1e-9);
    before = figures.attention_time;
  }
  EXPECT_GT(before / best.attention_time, 2);
}

TEST(AttentionKernels, AreRefusedWhereTheirPaceIsNotKnown) {
  Scenario scenario = toys::training();
  scenario.device = toys::shipped("devices", "a100-80gb-sxm").device;
  scenario.train.attention_kernel = AttentionGeneration::flash_3;
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.reason_class, ReasonClass::unsupported);
  EXPECT_EQ(outcome.reason,
            "train.attention_kernel flash_3: its pace on a100-80gb-sxm is not known; there are "
            "triton, flash_1 and flash_2 on A100s, and flash_3 too on H100s and their relatives");
}

}  // namespace
}  // namespace engine

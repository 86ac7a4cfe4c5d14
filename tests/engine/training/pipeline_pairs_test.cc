// Pipelines whose forward passes go on beside backward passes: 1F1B and chunks in turn with pairs, DualPipe, DualPipeV.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engine/base/random.h"
#include "engine/training/pipeline/pipeline_schedule.h"

namespace engine {
namespace {

struct Case {
  std::vector<ChunkTime> chunks;
  Pipeline pipeline;

  PipelineTime fast() {
    pipeline.chunks = chunks;
    return pipeline_time(pipeline);
  }
  PipelineTime by_steps(std::vector<PipelinePass>* passes = nullptr) {
    pipeline.chunks = chunks;
    return pipeline_time_step_by_step(pipeline, passes);
  }
};

constexpr double kForward = 1, kInputs = 1.2, kWeights = 0.9, kPair = 2.6;
const ChunkTime kChunk{Seconds{kForward}, Seconds{kInputs}, Seconds{kWeights}, Seconds{0.8},
                       Seconds{kPair - 0.8}};

Case equal_chunks(Schedule schedule, std::int64_t stages, std::int64_t micro_batches,
                  std::int64_t per_stage = 1) {
  Case made{.chunks = std::vector<ChunkTime>(std::size_t(stages * per_stage), kChunk)};
  made.pipeline = {.schedule = schedule,
                   .stages = stages,
                   .micro_batches = micro_batches,
                   .side_by_side = !is_dual(schedule)};
  return made;
}

// Of the stage that waits longest.
double longest_wait(Case made) {
  std::vector<PipelinePass> passes;
  const double total = made.by_steps(&passes).total.value;
  EXPECT_NEAR(made.fast().total.value / total, 1, 1e-9);
  double most = 0;
  for (std::int64_t stage = 0; stage < made.pipeline.stages; ++stage) {
    double busy = 0, last = -1;
    for (const PipelinePass& pass : passes) {
      // Both passes of a pair begin and end together.
      if (pass.stage != stage || pass.start.value == last) continue;
      busy += (pass.end - pass.start).value;
      last = pass.start.value;
    }
    most = std::max(most, total - busy);
  }
  return most;
}

// (PP/2 - 1) (F&B + B - 3W), PP chunks on PP devices or, folded, on half as many (the table of DeepSeek's DualPipe). It takes forward
// passes, gradients of inputs and gradients of weights to be equally long.
TEST(DualPipe, BubbleIsThePublishedOne) {
  for (const std::int64_t chunks : {2, 4, 8, 16, 64}) {
    for (const std::int64_t more : {0, 2, 30, 200}) {
      for (const double pair : {2.2, 2.6, 3.0}) {
        const double bubble = (double(chunks) / 2 - 1) * (pair + 2 - 3);
        const ChunkTime chunk{Seconds{1}, Seconds{1}, Seconds{1}, Seconds{0.8},
                              Seconds{pair - 0.8}};
        Case both = equal_chunks(Schedule::dualpipe, chunks, 2 * chunks + more);
        Case folded = equal_chunks(Schedule::dualpipe_v, chunks / 2, chunks + more, 2);
        both.chunks.assign(both.chunks.size(), chunk);
        folded.chunks.assign(folded.chunks.size(), chunk);
        const double tolerance = 1e-9 * double(chunks + more);
        EXPECT_NEAR(longest_wait(both), bubble, tolerance) << chunks << " " << more << " " << pair;
        EXPECT_NEAR(longest_wait(folded), bubble, tolerance)
            << chunks << " " << more << " " << pair;
      }
    }
  }
}

// Every device holds one pass more than there are chunks on the way of a micro-batch.
TEST(DualPipe, HoldsOnePassMoreThanChunks) {
  Case both = equal_chunks(Schedule::dualpipe, 8, 32),
       folded = equal_chunks(Schedule::dualpipe_v, 4, 32, 2);
  both.pipeline.chunks = both.chunks;
  folded.pipeline.chunks = folded.chunks;
  for (std::int64_t stage = 0; stage < 8; ++stage) EXPECT_EQ(passes_held(both.pipeline, stage), 9);
  for (std::int64_t stage = 0; stage < 4; ++stage)
    EXPECT_EQ(passes_held(folded.pipeline, stage), 9);
}

// The most that are begun and not done with at any moment.
TEST(DualPipe, HoldsWhatItsPassesShow) {
  for (const Schedule schedule :
       {Schedule::dualpipe, Schedule::dualpipe_v, Schedule::one_f_one_b, Schedule::interleaved}) {
    const bool two = schedule == Schedule::dualpipe_v || schedule == Schedule::interleaved;
    Case made = equal_chunks(schedule, 4, 24, two ? 2 : 1);
    std::vector<PipelinePass> passes;
    made.by_steps(&passes);
    for (std::int64_t stage = 0; stage < 4; ++stage) {
      std::int64_t held = 0, most = 0;
      for (const PipelinePass& pass : passes) {
        if (pass.stage != stage) continue;
        if (pass.kind == PassKind::forward) most = std::max(most, ++held);
        if (pass.kind == PassKind::backward) --held;
      }
      // Gradients of weights that are put off hold no more than was held before.
      EXPECT_EQ(most, passes_held(made.pipeline, stage)) << name_of(schedule) << " " << stage;
    }
  }
}

// A micro-batch goes down and comes back by itself, and all others are pairs of the last stage.
TEST(SideBySide, EqualStagesGiveTheFormula) {
  for (const std::int64_t stages : {1, 2, 3, 8, 33}) {
    for (const std::int64_t micro_batches : {2 * stages, 2 * stages + 1, 7 * stages + 3}) {
      Case made = equal_chunks(Schedule::one_f_one_b, stages, micro_batches);
      const double alone = double(stages) * (kForward + kInputs + kWeights);
      EXPECT_NEAR(made.fast().total.value, alone + double(micro_batches - 1) * kPair,
                  1e-9 * made.fast().total.value)
          << stages << " " << micro_batches;
    }
  }
}

// What is followed wave by wave, or skipped, is as if every pass were followed: chunks of all lengths, sends, few micro-batches and many.
TEST(SideBySide, FastEqualsSingleSteps) {
  for (std::uint64_t number = 0; number < 800; ++number) {
    const auto draw = [&](std::uint64_t what) { return uniform(number, Stream::sampling, what); };
    constexpr Schedule kAll[] = {Schedule::one_f_one_b, Schedule::interleaved, Schedule::dualpipe,
                                 Schedule::dualpipe_v};
    const Schedule schedule = kAll[number % 4];
    std::int64_t stages = 1 + std::int64_t(draw(0) * (draw(8) < 0.2 ? 40 : 9));
    if (schedule == Schedule::dualpipe) stages *= 2;
    if (schedule == Schedule::interleaved) stages += 1;  // one stage has nothing to take in turn
    std::int64_t micro_batches = 1 + std::int64_t(draw(1) * (draw(9) < 0.3 ? 200 : 20));
    if (schedule == Schedule::interleaved) micro_batches *= stages;
    if (is_dual(schedule)) micro_batches = 2 * (stages + micro_batches);
    const std::int64_t per_stage = schedule == Schedule::interleaved ? 1 + std::int64_t(draw(2) * 3)
                                   : schedule == Schedule::dualpipe_v ? 2
                                                                      : 1;
    Case made = equal_chunks(schedule, stages, micro_batches, per_stage);
    const double spread = draw(3) < 0.4 ? 0 : draw(3);
    for (std::size_t i = 0; i < made.chunks.size(); ++i) {
      std::uint64_t which = 10 + 8 * i;
      ChunkTime& chunk = made.chunks[i];
      for (Seconds* part : {&chunk.forward, &chunk.backward, &chunk.weights, &chunk.beside_forward,
                            &chunk.beside_backward}) {
        *part *= 1 + spread * draw(which++);
      }
    }
    made.chunks.front().forward *= 1 + draw(4);
    made.chunks.back().beside_backward *= 1 + draw(5) / 2;
    made.pipeline.send = Seconds{draw(6) < 0.4 ? 0 : draw(6) * draw(7)};
    const PipelineTime fast = made.fast(), slow = made.by_steps();
    EXPECT_NEAR(fast.total / slow.total, 1, 1e-9)
        << number << " " << name_of(schedule) << " " << stages << " " << micro_batches;
    EXPECT_GE(fast.total.value, fast.busy.value * (1 - 1e-9)) << number;
  }
}

// Passes in pairs that hide nothing are no faster than passes by themselves in an order that needs no pairs.
TEST(SideBySide, NothingIsGainedWhereNothingIsHidden) {
  const ChunkTime chunk{Seconds{1}, Seconds{2}, Seconds{0}, Seconds{1}, Seconds{2}};
  for (const std::int64_t stages : {1, 2, 8}) {
    for (const std::int64_t micro_batches : {1, 4, 16, 100}) {
      Case made = equal_chunks(Schedule::one_f_one_b, stages, micro_batches);
      made.chunks.assign(std::size_t(stages), chunk);
      const double pairs = made.fast().total.value;
      made.pipeline.side_by_side = false;
      EXPECT_GE(pairs, made.fast().total.value * (1 - 1e-12)) << stages << " " << micro_batches;
    }
  }
}

}  // namespace
}  // namespace engine

#include "engine/training/pipeline/pipeline_schedule.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "engine/base/random.h"

namespace engine {
namespace {

struct Case {
  std::vector<ChunkTime> chunks;
  Pipeline pipeline;
};

Case equal_stages(Schedule schedule, std::int64_t stages, std::int64_t micro_batches,
                  std::int64_t per_stage = 1) {
  Case made;
  const double weights = schedule == Schedule::zero_bubble ? 1 : 0;
  made.chunks.assign(std::size_t(stages * per_stage),
                     {Seconds{1}, Seconds{2 - weights}, Seconds{weights}});
  made.pipeline = {.schedule = schedule, .stages = stages, .micro_batches = micro_batches};
  return made;
}

PipelineTime time_of(Case& made) {
  made.pipeline.chunks = made.chunks;
  return pipeline_time(made.pipeline);
}

// The bubble of a full pipeline of equal stages: (p - 1) passes of each kind, whatever the number of micro-batches.
TEST(PipelineSchedule, EqualStagesGiveTheFormula) {
  for (const std::int64_t stages : {1, 2, 3, 8, 64}) {
    for (const std::int64_t micro_batches : {1, 2, 7, 64, 500}) {
      for (const Schedule schedule : {Schedule::gpipe, Schedule::one_f_one_b}) {
        Case made = equal_stages(schedule, stages, micro_batches);
        const PipelineTime time = time_of(made);
        EXPECT_NEAR(time.total.value, 3.0 * double(micro_batches + stages - 1), 1e-9);
        EXPECT_NEAR(1 - time.busy / time.total,
                    double(stages - 1) / double(micro_batches + stages - 1), 1e-12);
      }
    }
  }
}

// With v chunks a stage a bubble is as long as passes of chunks: v times shorter, in units of a stage.
TEST(PipelineSchedule, InterleavingDividesTheBubble) {
  for (const std::int64_t per_stage : {2, 4}) {
    Case made = equal_stages(Schedule::interleaved, 4, 16, per_stage);
    EXPECT_NEAR(time_of(made).total.value, 3.0 * double(16 * per_stage + 3), 1e-9);
  }
}

// ZB-H1: the bubble of forward and both halves of backward, less the half that is put off.
TEST(PipelineSchedule, WeightsPutOffFillTheBubble) {
  for (const std::int64_t stages : {2, 4, 8}) {
    Case made = equal_stages(Schedule::zero_bubble, stages, 32);
    EXPECT_NEAR(time_of(made).total.value, 3.0 * 32 + double(stages - 1), 1e-9);
  }
}

TEST(PipelineSchedule, RoundsEqualSingleSteps) {
  for (std::uint64_t number = 0; number < 1000; ++number) {
    const auto draw = [&](std::uint64_t what) { return uniform(number, Stream::sampling, what); };
    const std::int64_t stages = 1 + std::int64_t(draw(0) * 12);
    Case made = equal_stages(draw(1) < 0.5 ? Schedule::one_f_one_b : Schedule::zero_bubble, stages,
                             1 + std::int64_t(draw(2) * 60));
    for (std::size_t i = 0; i < made.chunks.size(); ++i) {
      ChunkTime& chunk = made.chunks[i];
      const bool alike = draw(3) < 0.5;
      chunk.forward = Seconds{alike ? 1 : 0.5 + draw(10 + i)};
      chunk.backward = Seconds{alike ? 2 : 1 + draw(100 + i)};
      if (made.pipeline.schedule == Schedule::zero_bubble) chunk.weights = Seconds{draw(200 + i)};
    }
    made.chunks.front().forward = made.chunks.front().forward * 1.5;
    made.chunks.back().backward = made.chunks.back().backward * 1.2;
    made.pipeline.send = Seconds{draw(4) < 0.5 ? 0 : draw(5) / 2};
    made.pipeline.chunks = made.chunks;
    EXPECT_NEAR(
        pipeline_time(made.pipeline).total / pipeline_time_step_by_step(made.pipeline).total, 1,
        1e-9)
        << number;
  }
}

// The same for several chunks a stage, and for all forward passes before all backward passes.
TEST(PipelineSchedule, ChunksAndSweepsEqualSingleSteps) {
  for (std::uint64_t number = 0; number < 400; ++number) {
    const auto draw = [&](std::uint64_t what) { return uniform(number, Stream::sampling, what); };
    const std::int64_t stages = 2 + std::int64_t(draw(0) * 7);
    const bool sweeps = draw(1) < 0.3;
    Case made = equal_stages(sweeps ? Schedule::gpipe : Schedule::interleaved, stages,
                             stages * (1 + std::int64_t(draw(2) * 5)),
                             sweeps ? 1 : 1 + std::int64_t(draw(6) * 4));
    for (std::size_t i = 0; i < made.chunks.size(); ++i) {
      made.chunks[i].forward = Seconds{draw(3) < 0.5 ? 1 : 0.5 + draw(10 + i)};
      made.chunks[i].backward = Seconds{draw(3) < 0.5 ? 2 : 1 + draw(100 + i)};
    }
    made.pipeline.send = Seconds{draw(4) < 0.5 ? 0 : draw(5) / 2};
    made.pipeline.chunks = made.chunks;
    EXPECT_NEAR(
        pipeline_time(made.pipeline).total / pipeline_time_step_by_step(made.pipeline).total, 1,
        1e-9)
        << number;
  }
}

// Long pipelines of stages that are alike but for the ends, as models are cut: what is skipped is as if it were followed.
TEST(PipelineSchedule, SkippedRoundsEqualSingleSteps) {
  for (const Schedule schedule :
       {Schedule::one_f_one_b, Schedule::zero_bubble, Schedule::interleaved}) {
    for (const double send : {0.0, 0.01, 0.3}) {
      for (const double last : {1.0, 1.02, 1.4}) {
        Case made = equal_stages(schedule, 16, 400, schedule == Schedule::interleaved ? 3 : 1);
        made.chunks.front().forward = Seconds{1.05};
        made.chunks.back().backward = made.chunks.back().backward * last;
        made.pipeline.send = Seconds{send};
        made.pipeline.chunks = made.chunks;
        EXPECT_NEAR(
            pipeline_time(made.pipeline).total / pipeline_time_step_by_step(made.pipeline).total, 1,
            1e-9)
            << send << " " << last;
      }
    }
  }
}

// The same where every chunk takes its own time, of as many stages as vector instructions take several times over: odd and
// even numbers of stages, ends that are longer than the rest, sends of all lengths, and virtual stages.
TEST(PipelineSchedule, LongPipelinesOfUnequalStagesEqualSingleSteps) {
  for (std::uint64_t number = 0; number < 60; ++number) {
    const auto draw = [&](std::uint64_t what) { return uniform(number, Stream::sampling, what); };
    const Schedule schedule =
        std::array{Schedule::one_f_one_b, Schedule::zero_bubble, Schedule::interleaved}[number % 3];
    const bool in_turn = schedule == Schedule::interleaved;
    const std::int64_t stages = 13 + std::int64_t(draw(0) * 30);
    const std::int64_t batches = std::int64_t(draw(1) * 300);
    Case made =
        equal_stages(schedule, stages, in_turn ? stages * (1 + batches / stages) : stages + batches,
                     in_turn ? 1 + std::int64_t(draw(2) * 4) : 1);
    const double spread = draw(3) < 0.3 ? 0 : draw(3);
    for (std::size_t i = 0; i < made.chunks.size(); ++i) {
      ChunkTime& chunk = made.chunks[i];
      chunk.forward = chunk.forward * (1 + spread * draw(1000 + i));
      chunk.backward = chunk.backward * (1 + spread * draw(2000 + i));
      chunk.weights = chunk.weights * (1 + spread * draw(3000 + i));
    }
    made.chunks.front().forward = made.chunks.front().forward * (1 + draw(4) / 2);
    made.chunks.back().backward = made.chunks.back().backward * (1 + draw(5));
    made.pipeline.send = Seconds{draw(6) < 0.3 ? 0 : draw(6) * draw(7)};
    made.pipeline.chunks = made.chunks;
    EXPECT_NEAR(
        pipeline_time(made.pipeline).total / pipeline_time_step_by_step(made.pipeline).total, 1,
        1e-9)
        << name_of(schedule) << " " << number;
  }
}

// Two stages are the first and the last at once, and as few micro-batches as there can be never fill the pipeline.
TEST(PipelineSchedule, ShortAndNarrowPipelinesEqualSingleSteps) {
  for (const Schedule schedule :
       {Schedule::one_f_one_b, Schedule::zero_bubble, Schedule::interleaved}) {
    for (std::int64_t stages = 2; stages <= 5; ++stages) {
      for (std::int64_t rounds = 1; rounds <= 12; ++rounds) {
        const bool chunks = schedule == Schedule::interleaved;
        Case made =
            equal_stages(schedule, stages, chunks ? stages * rounds : rounds, chunks ? 2 : 1);
        made.chunks.back().forward = Seconds{1.7};
        made.pipeline.send = Seconds{0.2};
        made.pipeline.chunks = made.chunks;
        EXPECT_NEAR(
            pipeline_time(made.pipeline).total / pipeline_time_step_by_step(made.pipeline).total, 1,
            1e-9)
            << name_of(schedule) << " " << stages << " " << rounds;
      }
    }
  }
}

TEST(PipelineSchedule, NoStageWaitsForNothing) {
  for (const Schedule schedule :
       {Schedule::gpipe, Schedule::one_f_one_b, Schedule::interleaved, Schedule::zero_bubble}) {
    Case made = equal_stages(schedule, 4, 8, schedule == Schedule::interleaved ? 2 : 1);
    const PipelineTime time = time_of(made);
    EXPECT_GE(time.total, time.busy);
    made.pipeline.send = Seconds{0.1};
    EXPECT_GE(time_of(made).total, time.total);
  }
}

// What a schedule saves in time it may cost in memory.
TEST(PipelineSchedule, HoldsAsManyPassesAsItRunsAhead) {
  Case plain = equal_stages(Schedule::one_f_one_b, 4, 16);
  Case all = equal_stages(Schedule::gpipe, 4, 16);
  plain.pipeline.chunks = plain.chunks;
  all.pipeline.chunks = all.chunks;
  EXPECT_EQ(passes_held(plain.pipeline, 0), 4);
  EXPECT_EQ(passes_held(plain.pipeline, 3), 1);
  EXPECT_EQ(passes_held(all.pipeline, 0), 16);
}

// Whoever puts gradients of weights off holds what they need until then: as much on every stage.
TEST(PipelineSchedule, HoldsWhatIsPutOff) {
  Case made = equal_stages(Schedule::zero_bubble, 4, 16);
  made.pipeline.chunks = made.chunks;
  for (std::int64_t stage = 0; stage < 4; ++stage) EXPECT_EQ(passes_held(made.pipeline, stage), 4);
  Case few = equal_stages(Schedule::zero_bubble, 4, 2);
  few.pipeline.chunks = few.chunks;
  for (std::int64_t stage = 0; stage < 4; ++stage) EXPECT_EQ(passes_held(few.pipeline, stage), 2);
}

// A pass beside another one lasts as long as both: a micro-batch is back after 2 (p - s) of them, and the last stage has one more begun.
// Chunks in turn run so far ahead that one more is enough; a stage alone has two.
TEST(PipelineSchedule, HoldsMoreWherePassesGoSideBySide) {
  const auto held = [](Schedule schedule, std::int64_t stages, std::int64_t stage, bool beside) {
    Case made = equal_stages(schedule, stages, 64, schedule == Schedule::interleaved ? 2 : 1);
    made.pipeline.chunks = made.chunks;
    made.pipeline.side_by_side = beside;
    return passes_held(made.pipeline, stage);
  };
  EXPECT_EQ(held(Schedule::one_f_one_b, 8, 0, true), 16);
  EXPECT_EQ(held(Schedule::one_f_one_b, 8, 7, true), 2);
  for (const std::int64_t stage : {0, 3, 7}) {
    EXPECT_EQ(held(Schedule::interleaved, 8, stage, true),
              held(Schedule::interleaved, 8, stage, false) + 1);
  }
  EXPECT_EQ(held(Schedule::one_f_one_b, 1, 0, true), 2);
}

}  // namespace
}  // namespace engine

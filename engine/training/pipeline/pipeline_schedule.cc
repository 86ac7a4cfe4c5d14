#include "engine/training/pipeline/pipeline_schedule.h"

#include <algorithm>
#include <cstddef>

#include "engine/base/check.h"
#include "engine/training/pipeline/pipeline_chunks.h"
#include "engine/training/pipeline/pipeline_dual.h"
#include "engine/training/pipeline/pipeline_order.h"
#include "engine/training/pipeline/pipeline_rounds.h"

namespace engine {
namespace {

bool has_pairs(const Pipeline& pipeline) {
  return pipeline.side_by_side || is_dual(pipeline.schedule);
}

// What the passes of a chunk take a stage.
double busy_with(const Pipeline& pipeline, std::int64_t stage, std::int64_t chunk) {
  const ChunkTime& time = pipeline.chunks[std::size_t(chunk)];
  const double backward = (time.backward + time.weights).value;
  const double passes = double(pipeline.schedule == Schedule::dualpipe ? passes_of_a_way(pipeline)
                                                                       : pipeline.micro_batches);
  if (!has_pairs(pipeline)) return passes * (time.forward.value + backward);
  const PassCounts alone = passes_alone(pipeline, stage, chunk);
  return alone.forward * time.forward.value + alone.backward * backward +
         (passes - alone.forward) * time.beside_forward.value +
         (passes - alone.backward) * time.beside_backward.value;
}

double busiest(const Pipeline& pipeline) {
  double most = 0;
  for (std::int64_t stage = 0; stage < pipeline.stages; ++stage) {
    double busy = 0;
    pipeline.places().each(stage, [&](std::int64_t c) { busy += busy_with(pipeline, stage, c); });
    most = std::max(most, busy);
  }
  return most;
}

double time_of(const Pipeline& pipeline, const StagePass& pass) {
  const ChunkTime& down = pipeline.chunks[std::size_t(pass.forward.chunk)];
  const ChunkTime& up = pipeline.chunks[std::size_t(pass.backward.chunk)];
  switch (pass.work) {
    case StageWork::forward:
      return down.forward.value;
    case StageWork::backward:
      return (up.backward + up.weights).value;
    case StageWork::inputs:
      return up.backward.value;
    case StageWork::weights:
      return up.weights.value;
    case StageWork::pair:
      return (down.beside_forward + up.beside_backward).value;
  }
  return 0;
}

// All forward passes, then all backward passes: the slowest stage does its passes one after another, and each other stage
// adds one.
Seconds time_of_two_sweeps(const Pipeline& pipeline) {
  Seconds forward, backward, slowest_forward, slowest_backward;
  for (const ChunkTime& chunk : pipeline.chunks) {
    const Seconds back = chunk.backward + chunk.weights;
    forward += chunk.forward;
    backward += back;
    slowest_forward = std::max(slowest_forward, chunk.forward);
    slowest_backward = std::max(slowest_backward, back);
  }
  const double others = double(pipeline.micro_batches - 1);
  const double sends = 2 * double(pipeline.stages - 1);
  return forward + backward + (slowest_forward + slowest_backward) * others + pipeline.send * sends;
}

}  // namespace

PipelineTime pipeline_time_step_by_step(const Pipeline& pipeline,
                                        std::vector<PipelinePass>* passes) {
  const std::size_t chunks = pipeline.chunks.size(), stages = std::size_t(pipeline.stages);
  const std::size_t micro_batches = std::size_t(pipeline.micro_batches);
  const ChunkPlaces places = pipeline.places();
  constexpr double unknown = -1;
  std::vector<double> forward(chunks * micro_batches, unknown), backward = forward;
  std::vector<std::vector<StagePass>> orders;
  for (std::size_t s = 0; s < stages; ++s) orders.push_back(order_of(pipeline, std::int64_t(s)));
  std::vector<std::size_t> at(stages, 0);
  std::vector<double> free(stages, 0);
  const auto moment = [&](std::vector<double>& ends, std::int64_t chunk,
                          std::int64_t micro_batch) -> double& {
    return ends[std::size_t(chunk) * micro_batches + std::size_t(micro_batch)];
  };
  // What a pass waits for; unknown while that has not been done. Where two ways meet on one stage, nothing is sent.
  const auto sent = [&](double end, std::int64_t from, std::int64_t to) {
    const bool stays =
        pipeline.schedule == Schedule::dualpipe_v && places.stage_of(from) == places.stage_of(to);
    return end < 0 ? unknown : end + (stays ? 0 : pipeline.send.value);
  };
  const auto input = [&](const PassPlace& place) {
    if (place.chunk == 0) return 0.0;
    return sent(moment(forward, place.chunk - 1, place.micro_batch), place.chunk - 1, place.chunk);
  };
  const auto gradient = [&](const PassPlace& place) {
    const std::int64_t next = place.chunk + 1;
    if (next == std::int64_t(chunks)) return moment(forward, place.chunk, place.micro_batch);
    return sent(moment(backward, next, place.micro_batch), next, place.chunk);
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < stages; ++s) {
      for (; at[s] < orders[s].size(); ++at[s], moved = true) {
        const auto& [work, down, up] = orders[s][at[s]];
        const bool forwards = work == StageWork::forward || work == StageWork::pair;
        const bool backwards = !forwards || work == StageWork::pair;
        const bool waits = backwards && work != StageWork::weights;
        const double first = forwards ? input(down) : 0, second = waits ? gradient(up) : 0;
        if (first < 0 || second < 0) break;
        const double began = std::max({free[s], first, second});
        free[s] = began + time_of(pipeline, orders[s][at[s]]);
        if (forwards) moment(forward, down.chunk, down.micro_batch) = free[s];
        if (waits) moment(backward, up.chunk, up.micro_batch) = free[s];
        if (passes == nullptr) continue;
        const auto write = [&](const PassPlace& place, PassKind kind) {
          passes->push_back({std::int64_t(s), place.chunk, place.micro_batch, kind, Seconds{began},
                             Seconds{free[s]}});
        };
        if (forwards) write(down, PassKind::forward);
        if (backwards) write(up, waits ? PassKind::backward : PassKind::weights);
      }
    }
  }
  for (std::size_t s = 0; s < stages; ++s) {
    check(at[s] == orders[s].size(), "a pipeline's order leads to its end");
  }
  return {Seconds{*std::max_element(free.begin(), free.end())}, Seconds{busiest(pipeline)}};
}

PipelineTime pipeline_time(const Pipeline& pipeline) {
  if (pipeline.stages == 1) {
    const Seconds busy{busiest(pipeline)};
    return {busy, busy};
  }
  const bool by_chunks = pipeline.schedule == Schedule::interleaved || pipeline.side_by_side;
  const Seconds total = is_dual(pipeline.schedule)             ? time_by_ways(pipeline)
                        : by_chunks                            ? time_by_chunks(pipeline)
                        : pipeline.schedule == Schedule::gpipe ? time_of_two_sweeps(pipeline)
                                                               : time_by_rounds(pipeline);
  return {total, Seconds{busiest(pipeline)}};
}

double work_of(const Pipeline& pipeline) {
  const double passes = 2 * double(pipeline.chunks.size()) * double(pipeline.micro_batches);
  if (pipeline.stages == 1 || pipeline.schedule == Schedule::gpipe) return 1;
  // A pass is a maximum and two sums; of long pipelines most are skipped.
  return 0.1 * passes;
}

}  // namespace engine

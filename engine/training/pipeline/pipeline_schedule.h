// How long a pipeline takes for one batch, when every stage works through its micro-batches in a fixed order.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/enum_names.h"
#include "engine/base/units.h"
#include "engine/training/pipeline/chunk_places.h"

namespace engine {

// One chunk of layers, for one micro-batch.
struct ChunkTime {
  Seconds forward;
  Seconds backward;  // the gradient of its input; that of its weights too, unless it is put off
  Seconds weights;   // the gradient of its weights, where it is put off
  // What a forward pass, and a backward pass with the gradient of its weights, take of a pair of them that goes on side by side.
  Seconds beside_forward, beside_backward;

  bool operator==(const ChunkTime&) const = default;
};

// Which chunk lies on which stage: ChunkPlaces.
struct Pipeline {
  Schedule schedule = Schedule::one_f_one_b;
  std::int64_t stages = 1;
  std::int64_t micro_batches = 1;
  Seconds send;  // from a stage to the next, beside the work of both
  std::span<const ChunkTime> chunks;
  bool side_by_side = false;  // 1f1b, interleaved: a forward pass goes on beside each backward pass

  ChunkPlaces places() const { return {schedule, stages, std::int64_t(chunks.size())}; }
  // Not of dualpipe, which has each chunk twice.
  std::int64_t chunks_per_stage() const { return std::int64_t(chunks.size()) / stages; }
};

struct PipelineTime {
  Seconds total;
  Seconds busy;  // of the busiest stage
};

// What a stage does for one micro-batch: the layers of one chunk forwards, backwards, or the gradients of its weights.
enum class PassKind : std::uint8_t { forward, backward, weights, none };
constexpr std::array<std::string_view, 4> enum_names(PassKind) {
  return {"forward", "backward", "weights", "none"};
}
struct PipelinePass {
  std::int64_t stage = 0;
  std::int64_t chunk = 0;
  std::int64_t micro_batch = 0;
  PassKind kind = PassKind::none;
  Seconds start, end;
};

PipelineTime pipeline_time(const Pipeline& pipeline);
// Units of work (engine/base/work_meter.h) that this takes at most.
double work_of(const Pipeline& pipeline);
// The same by following every pass of every stage: what the other is held to. The passes go to `passes`, stage by stage
// in the order of their times, where it is given.
PipelineTime pipeline_time_step_by_step(const Pipeline& pipeline,
                                        std::vector<PipelinePass>* passes = nullptr);

// The most passes whose activations a stage holds at once: those that wait for their backward pass, or for gradients of weights
// that are put off, which need as much (inputs of products and gradients of their outputs, where there were activations).
std::int64_t passes_held(const Pipeline& pipeline, std::int64_t stage);
// Of these, on average: of one of its chunks.
double passes_held(const Pipeline& pipeline, std::int64_t stage, std::int64_t chunk);

struct PassCounts {
  double forward = 0, backward = 0;
};
// Where passes go side by side: those of a chunk on a stage that have no other beside them, as a pipeline fills and empties.
PassCounts passes_alone(const Pipeline& pipeline, std::int64_t stage, std::int64_t chunk);

}  // namespace engine

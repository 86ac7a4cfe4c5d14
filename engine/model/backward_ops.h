// The operations that carry gradients back through a step.
#pragma once

#include "engine/model/model_ops.h"

namespace engine {

// Attention's products backward over those forward: four give the gradients of queries, keys and values, where there were two, and
// one computes the scores again, which is this part of them.
constexpr double kAttentionBackward = 2.5, kScoresAgain = 0.2;

// Appends what the operations of `forward` need for their gradients, last operation first: to `inputs` for gradients of what came in, and
// to `weights` for gradients of weights, which may wait. Sampling and decodes have none, since models are not trained on them.
void backward_ops(const OpList& forward, NarrowTurn turn, OpList& inputs, OpList& weights);

// Bytes of a plain pass that takes as long as to turn a narrow value round, by itself or as it is cast.
double turning_bytes(Dtype format, NarrowTurn turn);

// Adds a cast, and before it a pass that finds the largest value where all values share one scale: training takes it from the
// tensor at hand, while served models have it stored or take one for each token.
void add_cast(const PlannedOp& cast, OpList& ops);

// One for the whole tensor, which a pass before the cast finds. NVFP4 has it beside those of its blocks of 16.
constexpr bool has_one_scale(Dtype format, std::int64_t group) {
  return group > kLargestBlock || (format == Dtype::fp4 && group <= 16);
}

}  // namespace engine

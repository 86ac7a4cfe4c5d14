// The operations that carry gradients back through a step.
#pragma once

#include "engine/model/model_ops.h"

namespace engine {

// Appends what the operations of `forward` need for their gradients, last operation first: for those of what came in, and
// for those of weights, which may wait. Sampling has none, and neither have decodes: nobody trains on them.
void backward_ops(const OpList& forward, OpList& inputs, OpList& weights);

}  // namespace engine

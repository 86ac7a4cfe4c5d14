// The operations that carry gradients back through a step.
#pragma once

#include "engine/model/model_ops.h"

namespace engine {

// Appends what the operations of `forward` need for their gradients, last operation first. A product becomes two, one
// for the gradient of its input and one for that of its weights. Sampling has none, and neither have decodes: nobody
// trains on them.
void backward_ops(const OpList& forward, OpList& backward);

}  // namespace engine

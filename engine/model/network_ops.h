// The operations of a convolutional network.
#pragma once

#include <cstdint>

#include "engine/model/model_ops.h"
#include "engine/model/network.h"
#include "engine/model/parallelism.h"

namespace engine {

// Of `images` together, one operation for each line of the network. Norms, biases and activations are folded into convolutions, and sums with a
// shortcut are read as they write.
void network_ops(const std::vector<NetworkLayer>& layers, std::int64_t images,
                 const Quantization& quant, OpList& ops);

}  // namespace engine

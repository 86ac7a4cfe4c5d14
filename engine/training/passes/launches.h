// How many kernels the host launches for a pass: an operation may be several, and libraries launch experts one by one.
#pragma once

#include "engine/model/model_ops.h"
#include "engine/training/settings/train_settings.h"

namespace engine {

// Backward, gradients of inputs and of weights are counted apart: they share the casts of what both multiply.
enum class PassWay : std::uint8_t { forward, inputs, weights };

// In launches of a forward pass; those of a backward pass may take the host less.
double launches_of(const OpList& ops, PassWay way, const TrainSettings& train);

// Layers whose own code the host goes through for a pass, in forward passes of layers without experts.
double layers_gone_through(const OpList& ops, PassWay way);

// During which the device idles, in a forward pass: the host could not run ahead of it.
double launches_waited_for(const OpList& ops, const TrainSettings& train);

}  // namespace engine

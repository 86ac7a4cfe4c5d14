// How many kernels the host launches for a pass: an operation may be several, and libraries launch experts one by one.
#pragma once

#include "engine/model/model_ops.h"
#include "engine/training/settings/train_settings.h"

namespace engine {

// Backward, gradients of inputs and of weights are counted apart: they share the casts of what both multiply.
enum class PassWay : std::uint8_t { forward, inputs, weights };

// What the host does for a pass.
struct Launches {
  double kernels = 0;  // of the device, whoever launches them
  double one_by_one =
      0;  // of these, in launches of a forward pass; those of a backward pass may take the host less
  double replays = 0;  // of graphs that hold the others (train.cuda_graphs)
  double layers = 0;  // whose own code it goes through, in forward passes of layers without experts
  double waited_for = 0;  // during which the device idles: the host could not run ahead of it

  void add(const Launches& other);
};
Launches launches_of(const OpList& ops, PassWay way, const TrainSettings& train);

}  // namespace engine

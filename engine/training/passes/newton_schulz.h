// What Muon computes besides reading and writing its states: matrices of momenta made orthogonal.
#pragma once

#include "engine/model/model_ops.h"
#include "engine/training/passes/chunk_states.h"

namespace engine {

// Five iterations of Newton and Schulz (Jordan et al. 2024) for the weight matrices that the forward pass multiplies with on
// this device, each done by one of those that share it; embedding and output are updated otherwise.
void add_newton_schulz(const OpList& forward, const StateSharing& sharers, OpList& ops);

}  // namespace engine

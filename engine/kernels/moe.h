// Time of a device's routed experts in one fused call.
#pragma once

#include "engine/hardware/device.h"
#include "engine/kernels/kernel_time.h"
#include "engine/model/op.h"

namespace engine {

KernelTime moe_time(const Moe& op, const Device& device, const Calibration* calibration = nullptr);

Coordinates moe_coordinates(const Moe& op);
MoeFormat moe_format(const Moe& op);

// What the work of the fullest device, which all others wait for, is made of once routing is drawn.
struct Routed {
  double copies;   // of tokens
  double touched;  // local experts with a token
};

// With favourites as the op itself says, where no fit says more.
Routed routed_by_skew(const Moe& op);

// Local experts with at least one token, when every token chooses `top_k` at random, all alike; on a device that gets `fuller`
// times as many as the mean.
double experts_touched(const Moe& op, double fuller = 1);
// The same where some are favoured by a power law, as `skew` of the op says.
double favourites_touched(const Moe& op, double fuller = 1);

}  // namespace engine

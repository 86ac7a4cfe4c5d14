// What operations that run at the same time add to a step.
#pragma once

#include <span>

#include "engine/model/op.h"
#include "engine/step/kernel_row.h"

namespace engine {

// By how much work takes longer for a kernel that takes some of its multiprocessors and goes on beside it. Measured on an H200 under
// unbroken load, beside 2, 8, 16, 24 and 32 of 132 that are taken: products 0.03, 0.06, 0.19, 0.19 and 0.31 (0.02, 0.06, 0.14, 0.22 and
// 0.32 by this), attention in bursts 0.01, 0.05, 0.10, 0.17 and 0.24, passes over memory a third of that
// (specs/calibration/h200-sxm/train_beside.csv).
struct Taken {
  double multiprocessors = 0;
  double of = 1;
};
// None of a device that has no more than 16 by its datasheet: those of a few large cores (TPUs, Gaudi, Trainium) send by engines of
// their own.
Taken taken_of(double multiprocessors, const Device& device);
Seconds longer_beside(Seconds work, Seconds beside, const Taken& taken);

// Work passes beside other work for `hidden`: what the board draws at rest meanwhile is drawn once, and counted there.
void draw_beside(Seconds hidden, const Device& device, Joules& energy);

struct StreamRow {
  Beside beside;
  KernelRow row;
};

// Sets what is hidden in each row, and what is left of its interval and savings. A group takes as long as its longest
// stream, where the first one has fewer of the device's multiprocessors while another occupies some. The rows of a group share
// its interval, which is the maximum of its streams' at either end, in proportion to the time they add.
void overlap(std::span<StreamRow> rows, const Device& device);

}  // namespace engine

// What operations that run at the same time add to a step.
#pragma once

#include <span>

#include "engine/model/op.h"
#include "engine/step/kernel_row.h"

namespace engine {

struct StreamRow {
  Beside beside;
  KernelRow row;
};

// Sets what is hidden in each row, and what is left of its interval and savings. A group takes as long as its longest
// stream, where the first one has fewer of the device's multiprocessors while another occupies some. The rows of a group share
// its interval, which is the maximum of its streams' at either end, in proportion to the time they add.
void overlap(std::span<StreamRow> rows, double multiprocessors);

}  // namespace engine

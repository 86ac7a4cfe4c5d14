// The kernel model of devices whose matrix products a grid of multipliers does (device.array): a row of engine/kernels/kernel_time.cc.
#pragma once

#include <optional>

#include "engine/base/refusal.h"
#include "engine/calibration/calibration.h"
#include "engine/hardware/device.h"
#include "engine/kernels/chip_figures.h"
#include "engine/kernels/kernel_time.h"
#include "engine/model/model_ops.h"
#include "engine/model/op.h"
#include "engine/model/parallelism.h"

namespace engine {

inline bool has_grid(const Device& device) { return device.array.on(); }

KernelTime time_with_grid(Family family, const Op& op, const Device& device,
                          const Calibration* calibration);
// Rows without columns multiply nothing. And a peak that was stated for something else, or that the grid was altered under, would cut the
// grid short without a word.
std::optional<Refusal> grid_problem(const Device& device, const Quantization& quant);
// Cycles, energy by level, and area.
void report_grid(const OpList& ops, const Device& device, ChipFigures& figures);

}  // namespace engine

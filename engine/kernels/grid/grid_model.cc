#include "engine/kernels/grid/grid_model.h"

#include <fmt/core.h>

#include "engine/kernels/gemm.h"
#include "engine/kernels/grid/grid_call.h"
#include "engine/kernels/kernel_model.h"

namespace engine {

KernelTime time_with_grid(Family family, const Op& op, const Device& device,
                          const Calibration* calibration) {
  if (const auto call = grid_call(op, device)) return grid_time(*call, device);
  return gpu_time(family, op, device, calibration);
}

std::optional<Refusal> grid_problem(const Device& device, const Quantization& quant) {
  const SystolicArray& array = device.array;
  if ((array.rows > 0) != (array.columns > 0)) {
    return Refusal{ReasonClass::format,
                   fmt::format("a grid of {} rows and {} columns multiplies nothing: state both "
                               "device.array.rows and device.array.columns, or neither",
                               array.rows, array.columns)};
  }
  if (!array.on()) return std::nullopt;
  constexpr double rounding = 0.99;  // of a stated peak
  const Dtype dtype = compute_dtype(quant.weights, quant.activations);
  const FlopsPerSecond stated = matrix_peak(device, dtype), grid = grid_peak(device);
  if (stated >= grid * rounding) return std::nullopt;
  return Refusal{
      ReasonClass::format,
      fmt::format("device.peak.{} ({:.4g} TFLOP/s) is less than the grid does: {} x {} multipliers "
                  "x {} multiprocessors x 2 x {:g} GHz are {:.4g} TFLOP/s; state as much, or no "
                  "device.peak at all, which then follows from the grid",
                  name_of(dtype), stated.value / 1e12, array.rows, array.columns,
                  device.processors(), device.clock.value / 1e9, grid.value / 1e12)};
}

void report_grid(const OpList& ops, const Device& device, ChipFigures& figures) {
  const SystolicArray& array = device.array;
  const double multipliers = double(array.rows) * double(array.columns) * device.processors();
  GridCall sum;
  for (const PlannedOp& planned : ops) {
    if (const auto call = grid_call(planned.op, device)) sum.add(*call, planned.calls);
  }
  figures.array_cycles = sum.cycles;
  figures.array_utilization = sum.cycles > 0 ? sum.multiplies / (sum.cycles * multipliers) : 0;
  figures.multiply_energy = array.multiply_energy * sum.multiplies;
  figures.buffer_energy = array.buffer_energy * sum.buffer.value;
  figures.memory_energy = array.memory_energy * sum.memory.value;
  figures.array_energy = figures.multiply_energy + figures.buffer_energy + figures.memory_energy;
  constexpr double mib = 0x1p20, um2_per_mm2 = 1e6;
  figures.area_mm2 = multipliers * array.multiplier_area_um2 / um2_per_mm2 +
                     device.l2_capacity.value / mib * array.buffer_area_mm2;
}

}  // namespace engine

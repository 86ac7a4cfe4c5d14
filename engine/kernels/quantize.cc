#include "engine/kernels/quantize.h"

#include "engine/kernels/elementwise.h"

namespace engine {
namespace {

Elementwise pass_over(const Quantize& op) {
  const double values = op.rows * op.width;
  const double bytes = values * (2 + bytes_of(op.format));
  return {.rows = op.rows,
          .resident_bytes = op.cold ? 0 : bytes,
          .cold_bytes = op.cold ? bytes : 0,
          .flops = 3 * values};
}

}  // namespace

Coordinates quantize_coordinates(const Quantize& op) { return pass_coordinates(pass_over(op)); }

KernelTime quantize_time(const Quantize& op, const Device& device, const Calibration* calibration) {
  return elementwise_time(pass_over(op), device, Family::quantize, calibration);
}

}  // namespace engine

#include "engine/kernels/quantize.h"

#include "engine/kernels/elementwise.h"
#include "engine/kernels/kernel_models.h"

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

KernelTime time_of(const Quantize& op, const KernelContext& context) {
  return quantize_time(op, context.device, context.calibration);
}

Coordinates shape_of(const Quantize& op, Family) { return pass_coordinates(pass_over(op)); }

OwnSlot slot_of(const Quantize&, const SlotContext& context) {
  return pass_slot(Pass::quantize, context);
}

KernelTime quantize_time(const Quantize& op, const Device& device, const Calibration* calibration) {
  return elementwise_time(pass_over(op), device, Family::quantize, calibration);
}

}  // namespace engine

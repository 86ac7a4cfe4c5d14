// What products of 32-bit values reach, which no kernel table has: a share of the peak of the units that do them.
#pragma once

#include "engine/calibration/calibration.h"
#include "engine/hardware/device.h"
#include "engine/kernels/kernel_time.h"

namespace engine {

// `bound` is the roofline of a product in `dtype`. It stands where nothing that was measured on GPUs speaks for the device, or
// without a calibration; else times are longer by what libraries reach.
KernelTime reached_in_32_bits(const KernelTime& bound, Dtype dtype, const Device& device,
                              const Calibration* calibration);

}  // namespace engine

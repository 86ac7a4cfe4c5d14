// Time of turning 16-bit matrix inputs into a narrower format.
#pragma once

#include "engine/hardware/device.h"
#include "engine/kernels/kernel_time.h"
#include "engine/model/op.h"

namespace engine {

// The tables of narrow products include it; the fit keeps its terms apart, so that product and
// quantisation add up to what was measured.
KernelTime quantize_time(const Quantize& op, const Device& device,
                         const Calibration* calibration = nullptr);

}  // namespace engine

// Time of turning 16-bit matrix inputs into a narrower format.
#pragma once

#include "engine/hardware/device.h"
#include "engine/kernels/kernel_time.h"
#include "engine/model/op.h"

namespace engine {

// A pass of its own. Tables of engines have it inside narrow products (Gemm::quantizes_input), whose
// fit keeps that part apart.
KernelTime quantize_time(const Quantize& op, const Device& device,
                         const Calibration* calibration = nullptr);

}  // namespace engine

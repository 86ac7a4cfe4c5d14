// Time of what models have besides matrix products and attention: low-rank adapters, scans over a
// state, short convolutions. Rooflines only: no table measures them.
#pragma once

#include "engine/hardware/device.h"
#include "engine/kernels/kernel_time.h"
#include "engine/model/op.h"

namespace engine {

KernelTime lora_time(const Lora& op, const Device& device);
KernelTime scan_time(const Scan& op, const Device& device);
KernelTime convolution_time(const Convolution& op, const Device& device);

}  // namespace engine

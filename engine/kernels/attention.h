// Time of attention kernels.
#pragma once

#include "engine/hardware/device.h"
#include "engine/kernels/kernel_time.h"
#include "engine/model/op.h"

namespace engine {

KernelTime attention_prefill_time(const AttentionPrefill& op, const Device& device);
KernelTime attention_decode_time(const AttentionDecode& op, const Device& device);

}  // namespace engine

// Time of attention kernels, ordinary and latent.
#pragma once

#include "engine/hardware/device.h"
#include "engine/kernels/kernel_time.h"
#include "engine/model/op.h"

namespace engine {

// `family` says whose parameters hold: attn_prefill or mla_prefill, attn_decode or mla_decode.
KernelTime attention_prefill_time(const AttentionPrefill& op, const Device& device,
                                  Family family = Family::attn_prefill,
                                  const Calibration* calibration = nullptr);
KernelTime attention_decode_time(const AttentionDecode& op, const Device& device,
                                 Family family = Family::attn_decode,
                                 const Calibration* calibration = nullptr);

Coordinates prefill_coordinates(const AttentionPrefill& op);
Coordinates decode_coordinates(const AttentionDecode& op);

// Attention arithmetic runs in 16 bits unless both sides are fp8, or activations have 32 bits, and the device has it.
Dtype attention_dtype(const Device& device, Dtype kv, Dtype activations);

}  // namespace engine

// Time of the small products around latent attention: one a head, query into the latent space
// (mla_gen_pre) and result out of it (mla_gen_post).
#pragma once

#include "engine/hardware/device.h"
#include "engine/kernels/kernel_time.h"
#include "engine/kernels/own_slot.h"
#include "engine/model/op.h"

namespace engine {

// `family` is mla_gen_pre or mla_gen_post; the heads are the product's batch.
KernelTime absorbed_time(const Gemm& op, Family family, const Device& device,
                         const Calibration* calibration);

Coordinates absorbed_coordinates(const Gemm& op);

OwnSlot absorbed_slot(const Gemm& op, const SlotContext& context);

}  // namespace engine

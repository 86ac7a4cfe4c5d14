// The list of kernel models. Each op of engine/model/op.h has a file in this room that says how long a call takes,
// and, where a calibration knows it, what its coordinates are and where its measured calls are kept. A new op adds its
// lines here; one that only counts its work (`counts()` in engine/model/op.h) adds none.
#pragma once

#include "engine/kernels/kernel_time.h"
#include "engine/kernels/own_slot.h"
#include "engine/model/op.h"

namespace engine {

// What a time depends on beside the call's shape.
struct KernelContext {
  Family family;
  const Device& device;
  const Calibration* calibration;  // nullptr: the roofline
};

KernelTime time_of(const Gemm& op, const KernelContext& context);
Coordinates shape_of(const Gemm& op, Family family);
OwnSlot slot_of(const Gemm& op, const SlotContext& context);

KernelTime time_of(const GroupedGemm& op, const KernelContext& context);
Coordinates shape_of(const GroupedGemm& op, Family family);
OwnSlot slot_of(const GroupedGemm& op, const SlotContext& context);

KernelTime time_of(const Moe& op, const KernelContext& context);
Coordinates shape_of(const Moe& op, Family family);
OwnSlot slot_of(const Moe& op, const SlotContext& context);

KernelTime time_of(const AttentionPrefill& op, const KernelContext& context);
Coordinates shape_of(const AttentionPrefill& op, Family family);
OwnSlot slot_of(const AttentionPrefill& op, const SlotContext& context);

KernelTime time_of(const AttentionDecode& op, const KernelContext& context);
Coordinates shape_of(const AttentionDecode& op, Family family);
OwnSlot slot_of(const AttentionDecode& op, const SlotContext& context);

KernelTime time_of(const Elementwise& op, const KernelContext& context);
Coordinates shape_of(const Elementwise& op, Family family);
OwnSlot slot_of(const Elementwise& op, const SlotContext& context);

KernelTime time_of(const Quantize& op, const KernelContext& context);
Coordinates shape_of(const Quantize& op, Family family);
OwnSlot slot_of(const Quantize& op, const SlotContext& context);

KernelTime time_of(const Copy& op, const KernelContext& context);
Coordinates shape_of(const Copy& op, Family family);
OwnSlot slot_of(const Copy& op, const SlotContext& context);

KernelTime time_of(const Lora& op, const KernelContext& context);

KernelTime time_of(const ImageConvolution& op, const KernelContext& context);

// Communication is timed in engine/comm: a time asked for here is a mistake of ours.
KernelTime time_of(const Collective& op, const KernelContext& context);
Coordinates shape_of(const Collective& op, Family family);
OwnSlot slot_of(const Collective& op, const SlotContext& context);

KernelTime time_of(const ExpertExchange& op, const KernelContext& context);
Coordinates shape_of(const ExpertExchange& op, Family family);
OwnSlot slot_of(const ExpertExchange& op, const SlotContext& context);

// Ops that count their work get the roofline of what they count.
KernelTime counted_time(const OpCounts& counts, const Device& device);
template <class Counted>
requires requires(const Counted& op) { op.counts(); }
KernelTime time_of(const Counted& op, const KernelContext& context) {
  return counted_time(op.counts(), context.device);
}

// Ops that no table measures have no coordinates, and nothing is kept of them.
template <class Unmeasured>
Coordinates shape_of(const Unmeasured&, Family) {
  return {};
}
template <class Unmeasured>
OwnSlot slot_of(const Unmeasured&, const SlotContext&) {
  return {};
}

}  // namespace engine

// The fitted forms of attention.
#pragma once

#include "engine/calibration/calibration.h"
#include "engine/kernels/form.h"
#include "engine/model/op.h"

namespace engine {

// `peak` in FLOP a microsecond.
FormTime prefill_form(const AttentionPrefill& op, const DeviceRates& device, double peak,
                      const FittedSet<PrefillFit>& set);
FormTime decode_form(const AttentionDecode& op, const DeviceRates& device, double peak,
                     const FittedSet<DecodeFit>& set);

// Cached keys of a sequence that a kernel may share out among multiprocessors: none where a window bounds what a query sees.
double keys_to_share(const AttentionPrefill& op);
// Of `cached` keys, those that a multiprocessor need not go through when they are shared out in so many parts.
double saved_by_splitting(double cached, double parts);

}  // namespace engine

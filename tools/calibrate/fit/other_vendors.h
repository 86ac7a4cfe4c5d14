// What devices of generations that the shared parameters were not fitted to say about these.
#pragma once

#include <vector>

#include "engine/calibration/calibration.h"
#include "tools/calibrate/fit/transfer_fit.h"

namespace tools {

// Widens the intervals of the pooled sets of `shared` to what `devices` see, none of whose generations has a set there: each section by
// their calls of it. Nothing gets narrower, and sets of generations and classes stay.
void widen_pooled(engine::Calibration& shared, const std::vector<DeviceCalls>& devices,
                  const TransferOptions& options);

}  // namespace tools

// Is a table's time column what it says? What a fit would silently swallow is found here.
#pragma once

#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/hardware/device.h"
#include "tools/calibrate/tables/kernel_table.h"
#include "tools/calibrate/tables/measured_calls.h"

namespace tools {

// Families whose times cannot be seconds on this device: half of them are far below or above the
// roofline, as times in milliseconds or of another device are.
std::vector<engine::Mistake> unit_mistakes(const KernelTable& table, const engine::Device& device);

// What was left out or put together, one line each: unknown families, conflicting duplicates.
std::vector<std::string> remarks_on(const KernelTable& table);
std::vector<std::string> remarks_on(const GatheredCalls& calls);

}  // namespace tools

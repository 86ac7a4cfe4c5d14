// Which rows of the public kernel tables are fit to learn from. The same call was measured by several
// engine versions, some of them wrongly or with a fallback kernel; the rules are in the .cc, each with
// its reason.
#pragma once

#include <string>

#include "tools/calibrate/tables/host_timed.h"
#include "tools/calibrate/tables/kernel_table.h"
#include "tools/calibrate/tables/measured_calls.h"

namespace tools {

// The calls of a public table, one time each: the median or least over the implementations that are
// trusted for the family, format and architecture ("Ampere", "Hopper", ...).
std::vector<MeasuredCall> trusted_calls(const KernelTable& table, const std::string& architecture);

// The calls of one engine's version ("vllm_0.24.0"), whatever they are worth, but for the kernels
// `without`: of several kernels the fastest. Collectives are left out: all engines call the same library.
// Of one kernel of an engine ("sglang_0.5.14:triton"), the calls for which the engine has other kernels
// too.
std::vector<MeasuredCall> engine_calls(const KernelTable& table, const std::string& name,
                                       const std::vector<HostTimed>& without = {});

}  // namespace tools

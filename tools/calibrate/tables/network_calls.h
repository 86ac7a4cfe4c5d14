// Measured transfers of the public network profiles, as calls of the devices they were measured on.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "sweep/language/library.h"
#include "tools/calibrate/tables/measured_calls.h"

namespace tools {

// Rows that a fit does not see, and why.
struct NetworkCheck {
  std::string what;
  DeviceCalls calls;
};

struct NetworkCalls {
  std::vector<DeviceCalls> fitted;
  std::vector<NetworkCheck> checks;
};

// From vidur_profiles/network (send-receive inside and between nodes, all-reduce between nodes),
// apex_nccl and expert_parallel_deepep of the folder `data`. The rules on what is trusted are in the
// .cc, each with its reason.
engine::Result<NetworkCalls> network_calls(const std::filesystem::path& data,
                                           const sweep::Library& library);

}  // namespace tools

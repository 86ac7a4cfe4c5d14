// llmsweep calibrate --tier powers: what a device draws, as lines for its file.
#pragma once

#include <string>
#include <vector>

namespace tools {

// The exit code.
int calibrate_powers(const std::vector<std::string>& tables, const std::string& device);

}  // namespace tools

// llmsweep calibrate --tier host: a host whose steps take as long as measured ones, as a file of specs/hosts.
#pragma once

#include <string>
#include <vector>

namespace tools {

// `base` is a file that says what a sweep says under `base:`. The exit code.
int calibrate_host(const std::vector<std::string>& tables, const std::string& base,
                   const std::string& output);

}  // namespace tools

#pragma once

#include <string>

// Where the tree, the command and the data beside the tree are. One file knows them (paths.cc), so that no
// other object depends on where the tree lies and compiler caches are shared between checkouts.
namespace paths {

std::string source(const std::string& below = "");  // of the tree: source("tests/golden/x.txt")
std::string specs(const std::string& below = "");   // of its specs/: specs("devices/h200-sxm.yaml")
std::string shared(
    const std::string& below = "");  // of the data beside the tree; it may be missing
std::string binary();                // the llmsweep command of this build

}  // namespace paths

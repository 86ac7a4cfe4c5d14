// Inputs made from seeds: the same number gives the same input on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fuzz {

// Input `number`: the seeds themselves first, then seeds with a few random changes.
std::string make_input(std::uint64_t number, const std::vector<std::string>& seeds,
                       const std::vector<std::string_view>& words);

}  // namespace fuzz

// Runs that hold what others measured, not what a simulation gave.
#pragma once

#include <string_view>

namespace results {

// At the end of a measured run's spec_hash: a simulation of the same spec never goes on in its folder.
inline constexpr std::string_view kMeasuredMark = "-measured";

inline bool is_measured(std::string_view spec_hash) { return spec_hash.ends_with(kMeasuredMark); }

}  // namespace results

// The rows of a run as text, one line each with every column exact, in the order of their index: two
// runs gave the same rows if these are equal.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tests {

std::vector<std::string> table_rows(const std::filesystem::path& folder, const std::string& table);

// The `index` column alone, sorted.
std::vector<std::int64_t> table_indices(const std::filesystem::path& folder,
                                        const std::string& table);

}  // namespace tests

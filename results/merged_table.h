// Several files of one table as one: the rows of all of them, in the order of their index.
#pragma once

#include <filesystem>
#include <vector>

#include "results/parquet_file.h"

namespace results {

// One column is in memory at a time, beside the pages of those before it. Files whose columns differ
// are a Failure.
FileBytes merged_table(const std::vector<std::filesystem::path>& files);

// Whether files have the same columns, so that they can be merged.
bool same_columns(const std::filesystem::path& one, const std::filesystem::path& other);

}  // namespace results

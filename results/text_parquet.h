// Tables of text from and to Parquet files: what text_table.h says, for the one format that needs
// Arrow.
#pragma once

#include <filesystem>

#include "results/text_table.h"

namespace results {

engine::Result<TextTable> read_text_parquet(const std::filesystem::path& file);
void write_text_parquet(const std::filesystem::path& file, const TextTable& table);

}  // namespace results

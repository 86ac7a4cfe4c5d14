// Is a file still what it was when it was written: its length, and where asked its checksum.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "results/manifest.h"

namespace results {

// How closely a file is looked at.
enum class Look : std::uint8_t {
  length,    // what a kill or a lost disk can break
  contents,  // every byte is read
};

// The checksum of a file read piece by piece, or nothing where there is none.
std::optional<std::uint64_t> file_checksum(const std::filesystem::path& path);

// Why the file of a part cannot be used, as in "points/part-1of1-000003.parquet is missing"; empty
// where nothing is wrong or the part has no such file. A disk that does not answer is a Failure: that
// says nothing about the file.
std::string trouble_with(const std::filesystem::path& folder, const PartFile& file, Look look);
// The first trouble with the files of a part.
std::string trouble_with(const std::filesystem::path& folder, const PartRecord& part, Look look);

// The bytes of a part's file, if they are those that were written; a Failure says what is wrong.
std::string checked_bytes(const std::filesystem::path& folder, const PartFile& file);

}  // namespace results

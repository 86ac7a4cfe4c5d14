// Points that differ in nothing but `replicate`, as one row: means and their 95% intervals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "engine/base/result.h"

namespace results {

struct SummaryReport {
  std::uint64_t points = 0;   // of the run, so far
  std::uint64_t designs = 0;  // rows of the summary
  std::size_t fewest = 0;     // replicates of a design
  std::size_t most = 0;
};

// Reads the committed points of a run folder, of all its shards, and writes one Parquet file, whole or
// not at all. Same points, same file, however the run was split. Throws Failure where the disk says
// no.
engine::Result<SummaryReport> write_replicate_summary(const std::filesystem::path& run,
                                                      const std::filesystem::path& file);

}  // namespace results

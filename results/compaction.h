// Many small parts of a finished run as few large ones, with the same rows.
//
// They are written beside the old ones, into a hidden folder that is a run folder itself, so that a
// compaction that was killed goes on where it was. When that one is whole and has been read back, a mark
// is set, and from then on the old parts are exchanged for the new: a program that opens the run after a
// kill does the rest of it first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "engine/base/result.h"

namespace results {

struct CompactionOptions {
  // A new part is full when it has this many points, or rows of another table.
  std::uint64_t points_per_part = 256 << 10;
  std::uint64_t details_per_part = 2 << 20;
};

struct CompactionReport {
  std::size_t parts_before = 0;
  std::size_t parts_after = 0;  // equal where there is nothing to gain
};

// Compacts a run that is complete and sound, and that no other program is writing. Otherwise that is a mistake, and nothing is changed.
engine::Result<CompactionReport> compact_run(const std::filesystem::path& run,
                                             const CompactionOptions& options = {});

// Whether old parts are being exchanged for new ones, or were when the process was killed.
bool is_between_parts(const std::filesystem::path& run);
// Does the rest of that. The lock of the folder is held.
void finish_exchange(const std::filesystem::path& run);
// The same where there is a rest, and takes the lock itself.
void resume_exchange(const std::filesystem::path& run);

}  // namespace results

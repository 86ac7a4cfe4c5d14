// Which shards of a run are being written now, and how to be the only writer of one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "engine/base/result.h"
#include "results/durable_file.h"
#include "results/manifest.h"

namespace results {

enum class Writer : std::uint8_t {
  none,
  alive,
  unknown,  // the run is being opened or repaired, or its locks cannot be read
};

// One a shard. Changes nothing, and no writer that starts meanwhile is turned away.
std::vector<Writer> writers_of(const std::filesystem::path& run, const std::vector<Shard>& shards);

// The locks of all shards, so that no other process writes any of them as long as the locks live; or the mistake that one is being
// written. The caller holds the folder's lock.
engine::Result<std::vector<FileHandle>> lock_writers(const std::filesystem::path& run);

}  // namespace results

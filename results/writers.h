// Which shards of a run somebody is writing now.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "results/manifest.h"

namespace results {

enum class Writer : std::uint8_t {
  none,
  alive,
  unknown,  // the run is being opened or repaired, or its locks cannot be read
};

// One a shard. Changes nothing, and no writer that starts meanwhile is turned away.
std::vector<Writer> writers_of(const std::filesystem::path& run, const std::vector<Shard>& shards);

}  // namespace results

// How far a run is, shard by shard: what is done, how fast, how long it still takes, and whether it is being written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "results/manifest.h"
#include "results/run_folder.h"
#include "results/writers.h"
#include "sweep/space/index_set.h"

namespace tools {

struct ShardStatus {
  results::Shard shard;
  std::uint64_t positions = 0;  // its share of the grid, or what it has taken of it
  std::uint64_t done = 0;       // by whom ever
  std::uint64_t rows = 0;       // that it wrote
  std::uint64_t parts = 0;
  double positions_per_s = 0;  // between its first part and its last; 0: unknown
  double seconds_since = 0;    // its last part, or its start
  results::Writer writer = results::Writer::unknown;

  std::uint64_t left() const { return positions - done; }
  // Work is left, and no process does it.
  bool is_dead() const { return left() > 0 && writer == results::Writer::none; }
};

struct RunStatus {
  std::uint64_t positions = 0;
  sweep::IndexSet done;
  std::uint64_t rows = 0;
  std::vector<ShardStatus> shards;  // of the newest split, those that never started too
  results::Sharing sharing = results::Sharing::fixed;  // of these shards
  std::uint64_t untaken = 0;   // pieces that no worker has yet, where workers share the work
  double positions_per_s = 0;  // of the shards that are being written
  double seconds_left = 0;     // until all of them are done; infinite: some of it has no worker

  sweep::IndexSet missing() const;
  bool is_complete() const { return done.count() == positions; }
  bool has_writer() const;  // or one that may be there
};

// Changes nothing. A folder that is no run is a mistake; manifests that cannot be believed are a
// results::Failure.
engine::Result<RunStatus> run_status(const std::filesystem::path& run);

}  // namespace tools

// Is a run folder what was written: every line of its manifests, every byte of its files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "sweep/space/index_set.h"

namespace results {

struct VerifyReport {
  std::size_t manifests = 0;
  std::size_t parts = 0;    // that the manifests name
  std::size_t damaged = 0;  // of the parts, with those whose lines are damaged
  std::uint64_t rows = 0;   // of sound parts, in all tables
  std::uint64_t bytes = 0;  // read
  std::uint64_t positions = 0;
  std::uint64_t done = 0;           // positions of sound parts
  std::vector<std::string> damage;  // "points/part-1of1-000003.parquet is missing"
  // What lies among the parts and is none, so that readers of the folder find more than the run's rows. No repair removes
  // it, as it may be all that somebody has of something.
  std::vector<std::string> foreign;
  std::vector<std::string> notices;  // what is remarkable and no damage
  bool sound() const { return damage.empty() && foreign.empty(); }
};

// Changes nothing; a run that goes on meanwhile is not disturbed. A folder that is no run is a mistake.
engine::Result<VerifyReport> verify_run(const std::filesystem::path& run);

// The same, then drops what is damaged and nothing else: the next run computes those points again. A
// run that is being written, or of a newer program, is a mistake, and nothing is changed.
engine::Result<VerifyReport> repair_run(const std::filesystem::path& run);

}  // namespace results

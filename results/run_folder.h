// The folder of a run: opened for a new run or to go on with one, repaired after a kill, and asked
// what is done. Layout and protocol are in results/README.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "results/manifest.h"
#include "sweep/space/index_set.h"
#include "sweep/space/row_sink.h"

namespace results {

// Whether shards have their positions from the start, or take them while they work: results/claims.h.
enum class Sharing : std::uint8_t { fixed, taken };

// What a run is; a folder holds one spec, whatever its shards.
struct RunIdentity {
  std::string run_yaml;   // the resolved spec
  std::string spec_hash;  // equal for two runs that may share a folder
  Shard shard;
  std::uint64_t positions = 0;  // of the whole grid
  Sharing sharing = Sharing::fixed;
  double point_budget = 0;  // points that were given up with less work are done again; 0: none are
};

// Holds the lock of its shard: one process writes a shard at a time.
class RunFolder {
 public:
  // Any number of processes may open one folder at the same moment: shards of one run get along, and
  // of two different runs the first one wins. Mistakes are the user's: another spec, not a run folder,
  // shard in use. What the disk refuses, and manifests that cannot be believed, are Failures.
  static engine::Result<RunFolder> open(const std::filesystem::path& folder,
                                        const RunIdentity& identity);
  ~RunFolder();
  RunFolder(RunFolder&&) noexcept;
  RunFolder& operator=(RunFolder&&) noexcept;

  const std::filesystem::path& path() const;
  const RunIdentity& identity() const;
  // What was done before this process, by all shards; these positions need no work.
  const sweep::IndexSet& done() const;
  const sweep::Tally& tally() const;
  // What was repaired or is remarkable, for the user.
  const std::vector<std::string>& notices() const;

  std::uint64_t next_sequence();
  // Appends lines for parts whose files are permanent. One thread at a time; throws Failure.
  void record(const std::vector<PartRecord>& parts);

 private:
  struct State;
  explicit RunFolder(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// A run as its manifests tell it, without changing anything.
struct RunSummary {
  std::vector<ManifestHeader> shards;
  std::uint64_t positions = 0;
  sweep::IndexSet done;
  sweep::Tally tally;
  std::vector<PartRecord> parts;  // of all shards, in the order they were written
  bool complete() const { return done.count() == positions; }
};
// A folder that is no run is a mistake; manifests that cannot be believed are a Failure.
engine::Result<RunSummary> summarise(const std::filesystem::path& folder);
// "DIR is not finished: 40 of 100 positions are done", or nothing.
std::string not_finished(const std::filesystem::path& folder, const RunSummary& known);
// Why a run that its manifests know has not one row to answer from.
engine::Mistake without_points(const std::filesystem::path& folder, const RunSummary& known);

}  // namespace results

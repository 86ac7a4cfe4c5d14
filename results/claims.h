// Which worker does which part of a run. The grid is cut into many more pieces than there are workers, and a worker that is done
// with a piece takes the next free one. So all end at about the same time, however unequal the points are.
//
// A hidden file of the run folder has for each piece the number of its worker, 0 where it is free, and the positions that were
// done before. A piece stays with its worker: one that was killed goes on with its own pieces, and a run that is not split does
// those of workers that never come back. So a worker need not read what the others have done, however many they are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "results/manifest.h"
#include "sweep/space/index_set.h"

namespace results {

// One process at a time calls these three: it holds the lock of the folder.
bool has_claims(const std::filesystem::path& run, std::uint32_t workers);
void start_claims(const std::filesystem::path& run, std::uint32_t workers, std::uint64_t positions,
                  const sweep::IndexSet& done);
// Of any number of workers; none of them lives. What they have done is in their manifests.
void forget_claims(const std::filesystem::path& run);

// What is wrong with the files of claims, a line each.
std::vector<std::string> damaged_claims(const std::filesystem::path& run, std::uint64_t positions);

// How many pieces a grid is cut into for `workers` workers.
std::uint64_t pieces_of(std::uint64_t positions, std::uint32_t workers);
sweep::IndexSet piece_of(std::uint64_t positions, std::uint32_t workers, std::uint64_t piece);

// What the file says; a file that is damaged is a Failure.
struct ClaimsFile {
  std::vector<std::uint32_t> workers;  // of each piece, from 1; 0: it is free
  sweep::IndexSet done_before;
};
// Nothing where there are no claims.
std::optional<ClaimsFile> read_claims(const std::filesystem::path& run, std::uint32_t workers,
                                      std::uint64_t positions);

// The claims of one worker. Disks that refuse, and a file that is damaged, are Failures.
class Claims {
 public:
  Claims(std::filesystem::path run, Shard worker, std::uint64_t positions);

  // The positions of pieces that this worker took before it was last stopped.
  sweep::IndexSet earlier() const;
  // The positions of the next free piece; none when all are taken.
  sweep::IndexSet next();

 private:
  sweep::IndexSet take();

  const std::filesystem::path run_;
  const Shard worker_;
  const std::uint64_t positions_;
  std::uint64_t first_ = 0;  // all pieces before it are taken: a piece is never given back
};

}  // namespace results

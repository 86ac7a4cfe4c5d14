// Did the Pareto front move: which points entered, which left, and how far.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/compare/run_pair.h"
#include "tools/query/question.h"

namespace tools {

struct FrontMove {
  std::vector<Objective> objectives;  // empty: the runs share no usual pair of figures
  std::size_t before = 0;             // points on the old run's front
  std::size_t after = 0;              // on the new run's
  std::vector<std::uint32_t>
      entered;                      // rows of the new run that were not on the front, or not there
  std::vector<std::uint32_t> left;  // rows of the old run
  // For each point of the old front: by what share its figures, all alike, would have to get worse until
  // the new front no longer beats it (positive: the front is better there now; negative: worse).
  double median = 0;
  double worst = 0;             // least
  std::uint32_t worst_row = 0;  // of the old run
};

// What people look at first, as far as both runs have it.
std::vector<Objective> usual_objectives(const RunPair& pair);

// Unknown figures are mistakes.
engine::Result<FrontMove> front_move(const RunPair& pair, std::vector<Objective> objectives);

}  // namespace tools

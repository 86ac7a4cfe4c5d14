// Everything that differs between two runs, and whether they are the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/compare/attribution.h"
#include "tools/compare/drift.h"
#include "tools/compare/front_move.h"
#include "tools/compare/run_pair.h"

namespace tools {

struct CompareOptions {
  std::vector<std::string> tolerances;  // as the user writes them
  std::vector<Objective> objectives;    // of the front; empty: the usual ones
  std::size_t keep = 1000;              // points of each figure that are kept as the worst
  // Only points and figures that both runs have: a measurement has fewer than its simulation.
  bool only_common = false;
};

struct Comparison {
  bool only_common = false;
  std::vector<std::uint32_t> newly_infeasible;  // places in RunPair::pairs
  std::vector<std::uint32_t> newly_feasible;
  std::size_t drifted = 0;  // points that work in both and have a figure beyond its tolerance
  std::vector<FigureDrift> figures;
  std::vector<TextDrift> results;  // status, why not, what the figures rest on: a change is drift
  std::vector<TextDrift>
      tipped;  // bound and saturation: a small drift tips them, so they are only told
  std::vector<TextDrift> settings;
  FrontMove front;
  Attribution time;
};

engine::Result<Comparison> compare_runs(const RunPair& pair, const CompareOptions& options);

// No point new or missing, no figure beyond its tolerance, no result that changed.
bool is_same(const RunPair& pair, const Comparison& comparison);

}  // namespace tools

// Points and outcomes made from nothing but their index: rows for tests of results, without a spec
// and without an engine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "engine/outcome.h"
#include "results/manifest.h"
#include "results/run_folder.h"
#include "results/schema.h"
#include "sweep/space/point.h"
#include "sweep/space/row_sink.h"
#include "tests/support/temporary_folder.h"

namespace tests {

// A grid of `positions`, of which every 10th is rejected and every 7th of the rest infeasible.
struct ToySweep {
  std::uint64_t positions = 1000;
  int kernels = 3;                    // kernel rows of a point that works
  int requests = 0;                   // request rows, and timeline rows, of every second of them
  std::string spec = "sweep: toy\n";  // what run.yaml says

  results::SchemaInputs schema() const;
  results::RunIdentity identity(results::Shard shard = {}) const;
  bool rejected(std::uint64_t index) const { return index % 10 == 3; }
  // Reuses the memory of its arguments.
  void point(std::uint64_t index, sweep::Point& point) const;
  void outcome(std::uint64_t index, engine::Outcome& outcome) const;
};

// Fills the chunk of `range` and hands it to the sink.
void add_chunk(const ToySweep& toy, sweep::RowSink& sink, sweep::IndexRange range);
// Every position of `left`, in chunks of `chunk`, by `threads` threads; then a flush.
void run_toy(const ToySweep& toy, sweep::RowSink& sink, const sweep::IndexSet& left,
             std::uint64_t chunk = 64, int threads = 1);

}  // namespace tests

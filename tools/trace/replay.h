// One point of a sweep simulated alone, with everything that can be written down of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/outcome.h"
#include "engine/point_log.h"
#include "engine/resources.h"
#include "results/schema.h"
#include "sweep/space/point.h"

namespace tools {

struct ReplayOptions {
  std::size_t moments =
      1000;  // of the timeline, where neither the point nor `every` says how far they are apart
  double every = 0;         // seconds between two moments; 0: not stated
  std::size_t steps = 0;    // most steps or passes to log
  std::size_t kernels = 0;  // of these, with their kernels
};

struct Replay {
  engine::Outcome outcome;  // with rows of requests and moments, where the point serves a load
  engine::PointLog log;
};

// Its figures are those of the sweep: what is written down is read off the simulation.
Replay replay(engine::Scenario scenario, const engine::Resources& resources,
              const ReplayOptions& options);

// What a run says otherwise about the point, in a sentence: its row is missing, or has another key or figure.
// Nothing where they agree. Throws results::Failure where the run cannot be read.
std::optional<std::string> disagreement(const std::string& folder, const sweep::Point& point,
                                        const engine::Outcome& outcome);

// FOLDER/requests.parquet and FOLDER/timeline.parquet, of those that have rows, as a sweep with `output:` would write
// them for this point. Returns the names of the files. Throws results::Failure.
std::vector<std::string> write_rows(const std::string& folder, const results::SchemaInputs& inputs,
                                    const sweep::Point& point, const engine::Outcome& outcome);

}  // namespace tools

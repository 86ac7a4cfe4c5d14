// Runs a scenario of specs/suite with the calibrations and traces that a run would have.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "engine/evaluate.h"
#include "sweep/language/library.h"
#include "sweep/language/sweep_spec.h"
#include "sweep/space/space_parts.h"
#include "tests/support/paths.h"

namespace suite {

struct SuiteRun {
  engine::Scenario scenario;
  engine::Outcome outcome;
  const engine::Metrics& metrics() const { return outcome.metrics; }
};

// Every point is ok.
inline std::vector<SuiteRun> run_suite(const std::string& id) {
  const std::filesystem::path specs = paths::specs();
  engine::Result<sweep::SweepSpec> spec =
      sweep::read_sweep(specs / "suite" / (id + ".yaml"), sweep::Library({specs}));
  if (!spec) {
    ADD_FAILURE() << engine::to_text(spec.mistakes());
    return {};
  }
  std::vector<SuiteRun> runs;
  sweep::PointBuilder builder(spec->space);
  for (std::uint64_t i = 0; i < spec->space.size(); ++i) {
    sweep::Point point;
    if (builder.build(i, point) != sweep::Admission::admitted) continue;
    runs.push_back({point.scenario, engine::evaluate(point.scenario, *spec->resources)});
    EXPECT_EQ(runs.back().outcome.status, engine::Status::ok)
        << id << " " << i << ": " << runs.back().outcome.reason;
  }
  return runs;
}

}  // namespace suite

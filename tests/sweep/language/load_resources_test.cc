#include "sweep/language/load_resources.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "engine/evaluate.h"
#include "tests/sweep/sweep_fixture.h"

namespace sweep {
namespace {

TEST(LoadResources, ATraceIsReadOnceAndSharedByAllPoints) {
  const std::string path = testing::TempDir() + "shared_trace.csv";
  std::ofstream(path) << "arrival_s,prompt_tokens,output_tokens\n0,10,3\n0.5,20,4\n";
  const SweepSpec spec = toy_sweep(
      "base: {task: serve, device: toy, model: tiny, load: {arrivals: trace, trace: " + path +
      "}}\naxes:\n  - serving.max_num_seqs: {linear: [1, 500], count: 500}\n"
      "  - load.trace: [" +
      path + "]\n");
  // Whatever a point does, it cannot go back to the file.
  std::filesystem::remove(path);
  ASSERT_EQ(spec.resources->traces.size(), 1u);
  const std::shared_ptr<const engine::Trace>& trace = spec.resources->traces.begin()->second;
  PointBuilder builder(spec.space);
  Point point;
  for (std::uint64_t i = 0; i < spec.space.size(); ++i) {
    ASSERT_EQ(builder.build(i, point), Admission::admitted);
    EXPECT_EQ(spec.resources->find_trace(point.scenario.load.trace), trace.get());
  }
  EXPECT_EQ(trace.use_count(), 1);
  const engine::Outcome outcome = engine::evaluate(point.scenario, *spec.resources);
  EXPECT_EQ(outcome.metrics.requests_finished, 2) << outcome.reason;
}

}  // namespace
}  // namespace sweep

#include "sweep/language/load_resources.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "engine/evaluate.h"
#include "tests/support/temporary_folder.h"
#include "tests/sweep/sweep_fixture.h"

namespace sweep {
namespace {

TEST(LoadResources, ATraceIsReadOnceAndSharedByAllPoints) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.path() / "trace.csv";
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

// The identity of a sweep follows what its traces hold, wherever they are named, and a resolved sweep is refused
// once they hold something else: its points would have the keys of others.
TEST(LoadResources, AChangedTraceIsAnotherSweep) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.path() / "trace.csv";
  const auto write = [&path](int output) {
    std::ofstream(path) << "arrival_s,prompt_tokens,output_tokens\n0,10," << output << "\n";
  };
  const std::string base = "base: {task: serve, device: toy, model: tiny, load: {arrivals: trace";
  const std::string sweeps[] = {
      base + ", trace: " + path + "}}\n",
      base + "}}\naxes:\n  - load.trace: [{value: " + path + ", label: recorded}]\n",
      base + "}}\naxes:\n  - load.trace: [" + path + "]\n",
      base + "}}\naxes:\n  - load: [{trace: " + path + "}]\n",
      base + "}}\naxes:\n  - sample: {random: 2, of: {load.trace: [" + path + "]}}\n",
      base + "}}\naxes:\n  - concat: [{base: {load.trace: " + path + "}}, {base: {seed: 3}}]\n",
  };
  for (const std::string& text : sweeps) {
    write(3);
    const SweepSpec before = toy_sweep(text);
    EXPECT_EQ(toy_sweep(resolved_yaml(before)).digest, before.digest) << text;
    write(4);
    const SweepSpec after = toy_sweep(text);
    EXPECT_NE(after.digest, before.digest) << text;
    // A resolved sweep says what the trace was, so that it is refused or is another sweep.
    const auto again = read_sweep_text(resolved_yaml(before), "run.yaml", toy_library());
    if (again) {
      EXPECT_EQ(again->digest, after.digest) << text;
      continue;
    }
    ASSERT_EQ(again.mistakes().size(), 1u) << engine::to_text(again.mistakes());
    EXPECT_TRUE(again.mistakes()[0].what.starts_with(
        "'" + path + "' is not what it was when this sweep was resolved ("))
        << again.mistakes()[0].what;
  }
  std::filesystem::remove(path);
}

// Where it lies decides no point.
TEST(LoadResources, AMovedTraceIsTheSameSweep) {
  const tests::TemporaryFolder folder;
  const std::string here = folder.path() / "here.csv", there = folder.path() / "there.csv";
  for (const std::string& path : {here, there}) {
    std::ofstream(path) << "arrival_s,prompt_tokens,output_tokens\n0,10,3\n";
  }
  const std::string base = "base: {task: serve, device: toy, model: tiny, load: {arrivals: trace";
  const auto sweeps = [&base](const std::string& path) {
    return std::vector<std::string>{
        base + ", trace: " + path + "}}\n",
        base + "}}\naxes:\n  - load.trace: [{value: " + path + ", label: recorded}]\n",
        base + "}}\naxes:\n  - concat: [{base: {load.trace: " + path + "}}, {base: {seed: 3}}]\n"};
  };
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(toy_sweep(sweeps(here)[i]).digest, toy_sweep(sweeps(there)[i]).digest) << i;
  }
  // Rows are called by the path where nobody gives them another label.
  const auto listed = [&base](const std::string& path) {
    return toy_sweep(base + "}}\naxes:\n  - load.trace: [" + path + "]\n").digest;
  };
  EXPECT_NE(listed(here), listed(there));
}

}  // namespace
}  // namespace sweep

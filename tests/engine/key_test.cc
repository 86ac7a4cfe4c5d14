#include "engine/leaves/key.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <set>

#include "engine/evaluate.h"
#include "engine/leaves/leaf_use.h"
#include "engine/leaves/leaves.h"
#include "tests/support/calibrations.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

Scenario scenario_of(Task task) {
  Scenario scenario = toys::scenario();
  scenario.task = task;
  scenario.parallel = {.tp = 2, .dp = 2};
  scenario.load.requests = 8;
  scenario.load.lengths.prompt = 30;
  scenario.load.lengths.output = 4;
  scenario.request = {.batch = 2, .prompt = 100, .output = 5};
  scenario.train = {.sequence = 64, .micro_batch = 1, .global_batch = 4};
  return scenario;
}

// The leaf with a value it does not have now, and may have.
Scenario changed(Scenario scenario, const Leaf& leaf) {
  const auto within = [&leaf](double value) {
    return value >= leaf.range.low && value <= leaf.range.high;
  };
  switch (leaf.kind) {
    case LeafKind::quantity:
    case LeafKind::number: {
      const double now = leaf_double(scenario, leaf);
      for (const double other : {now + 1.5, now / 2, now + 0.25}) {
        if (other == now || !within(other)) continue;
        set_leaf(scenario, leaf, other);
        break;
      }
      break;
    }
    case LeafKind::integer:
      set_leaf(scenario, leaf, leaf_integer(scenario, leaf) + 7);
      break;
    case LeafKind::boolean:
      set_leaf(scenario, leaf, leaf_integer(scenario, leaf) == 0);
      break;
    case LeafKind::enumeration:
      set_leaf(scenario, leaf,
               (leaf_integer(scenario, leaf) + 1) % std::int64_t(leaf.names.size()));
      break;
    case LeafKind::text:
      set_leaf(scenario, leaf, leaf_text(scenario, leaf) + "x");
      break;
  }
  return scenario;
}

bool in_key(const Scenario& scenario, const Leaf& leaf) {
  return leaf.range.in_key && is_present(scenario, leaf) &&
         task_reads(scenario.task, leaf_table().find_leaf(leaf.path));
}

// Every task, and every deployment beside the main one.
std::vector<Scenario> bases() {
  std::vector<Scenario> all;
  for (const Task task : {Task::step, Task::request, Task::serve, Task::train, Task::denoise})
    all.push_back(scenario_of(task));
  Scenario images = scenario_of(Task::classify);
  images.parallel.tp = 1;
  images.model.network = "conv 8 from 3 side 32 kernel 3, conv 8 groups 8, linear 10";
  all.push_back(images);
  Scenario apart = scenario_of(Task::request);
  apart.device.scale_out = {.topology = Topology::fabric, .bandwidth = BytesPerSecond{50e9}};
  apart.prefill.present = true;
  fill_roles(apart);
  all.push_back(apart);
  // Samples are made by the main deployment's engine, or by that of a role.
  Scenario samples = scenario_of(Task::train);
  samples.train.rollout = {.prompts = 4, .samples = 4, .lengths = {.prompt = 20, .output = 12}};
  all.push_back(samples);
  samples.rollout.present = true;
  fill_roles(samples);
  all.push_back(samples);
  return all;
}

TEST(Key, DependsOnWhatTheTaskReadsAndOnNothingElse) {
  for (const Scenario& base : bases()) {
    std::set<Key> keys{key_of(base)};
    for (const Leaf& leaf : leaf_table().leaves) {
      const bool fresh = keys.insert(key_of(changed(base, leaf))).second;
      EXPECT_EQ(fresh, in_key(base, leaf)) << name_of(base.task) << " " << leaf.path;
    }
  }
}

// Otherwise a point found by its key would not be the point.
TEST(Key, WhatIsNotInItMovesNoFigure) {
  for (const Scenario& base : bases()) {
    const Outcome expected = evaluate(base);
    ASSERT_EQ(expected.status, Status::ok) << expected.reason;
    for (const Leaf& leaf : leaf_table().leaves) {
      if (in_key(base, leaf)) continue;
      const Outcome outcome = evaluate(changed(base, leaf));
      EXPECT_EQ(outcome.reason, expected.reason) << name_of(base.task) << " " << leaf.path;
      EXPECT_EQ(std::memcmp(&outcome.metrics, &expected.metrics, sizeof(Metrics)), 0)
          << name_of(base.task) << " " << leaf.path;
      EXPECT_EQ(outcome.kernels, expected.kernels) << name_of(base.task) << " " << leaf.path;
    }
  }
}

TEST(Key, NamesAreLabels) {
  for (const Leaf& leaf : leaf_table().leaves) {
    if (leaf.kind != LeafKind::text || !leaf.path.ends_with("name")) continue;
    EXPECT_FALSE(leaf.range.in_key) << leaf.path;
  }
}

TEST(Key, IsTheSameForTheSameContent) {
  Scenario a = toys::scenario();
  Scenario b = toys::scenario();
  EXPECT_EQ(key_of(a), key_of(b));
  a.host.kernel_gap = Seconds{0.0};
  b.host.kernel_gap = Seconds{-0.0};
  EXPECT_EQ(key_of(a), key_of(b));
  EXPECT_EQ(to_hex({.high = 0x0123456789abcdef, .low = 0x10}), "0123456789abcdef0000000000000010");
}

std::shared_ptr<const Calibration> loaded(std::string identity, Tier tier) {
  Calibration calibration;
  calibration.tier = tier;
  calibration.identity = std::move(identity);
  return std::make_shared<const Calibration>(std::move(calibration));
}

TEST(Key, FollowsTheCalibrationThatIsReadAndNoOther) {
  Scenario best = toys::scenario();
  Scenario roofline = best, engine = best;
  roofline.calibration.tier = TierChoice::roofline;
  engine.serving.kernels = "vllm";
  Calibrations have;
  have.by_name["transfer"] = loaded("a", Tier::transfer);
  have.by_engine["vllm"] = loaded("b", Tier::transfer);
  const Key best_key = key_of(best, have), engine_key = key_of(engine, have);
  EXPECT_EQ(key_of(roofline, have), key_of(roofline));
  EXPECT_NE(best_key, key_of(best));

  // One that nobody here reads.
  Calibration elsewhere;
  elsewhere.tier = Tier::measured;
  elsewhere.identity = "c";
  elsewhere.measured_on = toys::gpu();
  elsewhere.measured_on->memory_bandwidth = BytesPerSecond{7e12};
  have.by_name["elsewhere"] = std::make_shared<const Calibration>(elsewhere);
  have.by_engine["sglang"] = loaded("d", Tier::transfer);
  EXPECT_EQ(key_of(best, have), best_key);
  EXPECT_EQ(key_of(engine, have), engine_key);
  EXPECT_EQ(key_of(roofline, have), key_of(roofline));

  // The transfer parameters change, the engine's do not.
  have.by_name["transfer"] = loaded("e", Tier::transfer);
  EXPECT_NE(key_of(best, have), best_key);
  EXPECT_EQ(key_of(engine, have), engine_key);
  EXPECT_EQ(key_of(roofline, have), key_of(roofline));
}

}  // namespace
}  // namespace engine

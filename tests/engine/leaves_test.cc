#include "engine/leaves/leaves.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace engine {
namespace {

const Leaf& leaf(std::string_view path) {
  const int position = leaf_table().find_leaf(path);
  EXPECT_GE(position, 0) << path;
  return leaf_table().leaves[std::size_t(position)];
}

TEST(Leaves, PathsAreUniqueAndDescribed) {
  std::set<std::string> paths;
  for (const Leaf& entry : leaf_table().leaves) {
    EXPECT_TRUE(paths.insert(entry.path).second) << entry.path;
    EXPECT_FALSE(entry.meaning.empty()) << entry.path;
  }
}

TEST(Leaves, AreReadAndWrittenInPlace) {
  Scenario scenario;
  set_leaf(scenario, leaf("device.memory_bandwidth"), 3e12);
  set_leaf(scenario, leaf("device.scale_up.devices"), std::int64_t{72});
  set_leaf(scenario, leaf("model.qk_norm"), true);
  set_leaf(scenario, leaf("quant.kv"), std::int64_t(Dtype::fp8));
  set_leaf(scenario, leaf("model.name"), std::string("new"));
  EXPECT_EQ(scenario.device.memory_bandwidth.value, 3e12);
  EXPECT_EQ(scenario.device.scale_up.devices, 72);
  EXPECT_TRUE(scenario.model.qk_norm);
  EXPECT_EQ(scenario.quant.kv, Dtype::fp8);
  EXPECT_EQ(scenario.model.name, "new");
  EXPECT_EQ(get_leaf(scenario, leaf("quant.kv")), LeafValue{std::int64_t(Dtype::fp8)});
}

TEST(Leaves, DefaultsLieInTheirRanges) {
  const Scenario scenario;
  for (const Leaf& entry : leaf_table().leaves) {
    const double value = leaf_as_double(scenario, entry);
    if (std::isnan(value) || entry.path.ends_with("device.memory_capacity") ||
        entry.path.ends_with("device.memory_bandwidth")) {
      continue;  // text, and what only a device file can tell
    }
    if (entry.range.word != nullptr && value == entry.range.word_value) continue;
    EXPECT_GE(value, entry.range.low) << entry.path;
    EXPECT_LE(value, entry.range.high) << entry.path;
  }
}

}  // namespace
}  // namespace engine

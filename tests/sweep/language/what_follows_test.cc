// Some fields follow from others: formats from the model, hosts from the engine, roles from the main deployment. A sub-sweep that states
// such a field says nothing of what its siblings are.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/leaves/leaves.h"
#include "sweep/language/read_value.h"
#include "tests/sweep/sweep_fixture.h"

namespace sweep {
namespace {

engine::Result<SweepSpec> read(const std::string& text) {
  return read_sweep_text(text, "sweep.yaml", Library({paths::specs()}), InertAxes::allowed);
}

std::vector<engine::Scenario> points_of(const std::string& text) {
  const auto spec = read(text);
  EXPECT_TRUE(spec) << text << engine::to_text(spec.mistakes());
  return spec ? admitted(*spec) : std::vector<engine::Scenario>{};
}

// A model, an engine and a library that come with others; DeepSeek's formats and vLLM's host are no defaults.
const std::vector<std::string> kNamed{
    "base: {device: h200-sxm, model: deepseek-v3, serving: vllm-v1, ",
    "base: {task: train, device: h200-sxm, model: llama-3.1-8b, train: {from: megatron, sequence: "
    "1024}, ",
};

bool same(const engine::Scenario& one, const engine::Scenario& other, std::string& where) {
  for (const engine::Leaf& leaf : engine::leaf_table().leaves) {
    if (!engine::is_present(one, leaf) && !engine::is_present(other, leaf)) continue;
    if (engine::get_leaf(one, leaf) == engine::get_leaf(other, leaf)) continue;
    where = leaf.path;
    return false;
  }
  return true;
}

// Every field of the main deployment whose value in the point is not what a scenario without names has: it may follow from one.
std::vector<const engine::Leaf*> fields_of(const engine::Scenario& point) {
  const engine::Scenario plain;
  std::vector<const engine::Leaf*> found;
  for (const engine::Leaf& leaf : engine::leaf_table().leaves) {
    const bool main = !engine::of_role(leaf) && leaf.path.find('.') != std::string::npos;
    const bool of_named = leaf.path.starts_with("model.") || leaf.path.starts_with("device.");
    if (!main || of_named || leaf.range.file) continue;
    const bool follows = engine::get_leaf(point, leaf) != engine::get_leaf(plain, leaf) ||
                         leaf.path.starts_with("quant.") || leaf.path.starts_with("host.");
    if (follows) found.push_back(&leaf);
  }
  return found;
}

TEST(WhatFollows, ASiblingThatStatesAFieldChangesNothingHere) {
  for (const std::string& named : kNamed) {
    const std::string first = "  - concat:\n      - {name: a, base: {step.batch: 2}}\n";
    const auto alone = points_of(named + "step.batch: 1}\naxes:\n" + first);
    ASSERT_EQ(alone.size(), 1u);
    const engine::Scenario plain;
    for (const engine::Leaf* leaf : fields_of(alone.front())) {
      const std::string value = value_text(*leaf, engine::get_leaf(plain, *leaf));
      if (value.empty()) continue;
      // 'quant.weights' has to be said of all points or of none, which a message tells.
      if (leaf->path == "quant.weights") continue;
      const std::string text = named + "step.batch: 1}\naxes:\n" + first +
                               "      - {name: b, base: {" + leaf->path + ": " + value + "}}\n";
      const auto spec = read(text);
      if (!spec) continue;  // a value that no such point may have
      const auto points = admitted(*spec);
      ASSERT_EQ(points.size(), 2u) << leaf->path;
      std::string where;
      EXPECT_TRUE(same(points[0], alone[0], where))
          << leaf->path << " of a sibling moved " << where;
      EXPECT_EQ(engine::get_leaf(points[1], *leaf), engine::get_leaf(plain, *leaf)) << leaf->path;
    }
  }
}

std::string said(const engine::Quantization& quant) {
  return std::string(engine::name_of(quant.weights)) + " " +
         std::string(engine::name_of(quant.activations)) + " " + std::to_string(quant.group) + " " +
         std::string(engine::name_of(quant.scope)) + " kv " +
         std::string(engine::name_of(quant.kv));
}
std::vector<std::string> formats_of(const std::string& text) {
  std::vector<std::string> names;
  for (const engine::Scenario& point : points_of(text)) names.push_back(said(point.quant));
  // Once its names are looked up it says the same.
  const auto spec = read(text);
  std::vector<std::string> again;
  for (const engine::Scenario& point : points_of(spec ? spec->resolved : "")) {
    again.push_back(said(point.quant));
  }
  EXPECT_EQ(names, again) << (spec ? spec->resolved : "");
  return names;
}

const std::string kBlocks = "fp8 fp8 128 all kv bf16";
const std::string kExperts = "fp4 bf16 32 experts kv bf16";
const std::string kWide = "bf16 bf16 128 all kv bf16";
using Names = std::vector<std::string>;

TEST(WhatFollows, FormatsOfAModelInABaseStayBesideSubSweepsThatStateSome) {
  const std::string start = "base: {device: h200-sxm, model: deepseek-v3}\naxes:\n";
  EXPECT_EQ(formats_of(start + "  - concat: [{name: a}, {name: b, base: {quant.activations: "
                               "bf16}}]\n"),
            (Names{kBlocks, "fp8 bf16 128 all kv bf16"}));
  EXPECT_EQ(formats_of(start + "  - concat: [{name: a}, {name: b, axes: [quant.activations: [bf16, "
                               "fp8]]}]\n"),
            (Names{kBlocks, "fp8 bf16 128 all kv bf16", kBlocks}));
  EXPECT_EQ(formats_of(start + "  - step.batch: [1, 2]\n"
                               "  - quant.activations: {values: [bf16], when: step.batch == 1}\n"),
            (Names{"fp8 bf16 128 all kv bf16", kBlocks}));
  EXPECT_EQ(formats_of(start + "  - quant: [{}, {activations: bf16}, {group: 64, kv: fp8}]\n"),
            (Names{kBlocks, "fp8 bf16 128 all kv bf16", "fp8 fp8 64 all kv fp8"}));
}

TEST(WhatFollows, SoDoThoseOfModelsOnAnAxis) {
  const std::string start =
      "base: {device: h200-sxm}\naxes:\n  - model: [deepseek-v3, gpt-oss-20b]\n";
  EXPECT_EQ(formats_of(start + "  - concat: [{name: a}, {name: b, base: {quant: {activations: "
                               "bf16, scope: all}}}]\n"),
            (Names{kBlocks, "fp8 bf16 128 all kv bf16", kExperts, "fp4 bf16 32 all kv bf16"}));
  EXPECT_EQ(formats_of(start + "  - step.batch: [1, 2]\n"
                               "  - quant.group: {values: [64], when: step.batch == 1}\n"),
            (Names{"fp8 fp8 64 all kv bf16", kBlocks, "fp4 bf16 64 experts kv bf16", kExperts}));
  // Listed before, and drawn together.
  EXPECT_EQ(formats_of("base: {device: h200-sxm}\naxes:\n"
                       "  - concat: [{name: a}, {name: b, base: {quant.activations: bf16}}]\n"
                       "  - model: [deepseek-v3, llama-3.1-8b]\n"),
            (Names{kBlocks, kWide, "fp8 bf16 128 all kv bf16", kWide}));
}

TEST(WhatFollows, SoDoThoseOfModelsInASubSweep) {
  const std::string start = "base: {device: h200-sxm}\naxes:\n";
  EXPECT_EQ(formats_of(start + "  - step.batch: [1, 2]\n"
                               "  - concat: [{name: a, base: {model: deepseek-v3}}, "
                               "{name: b, base: {model: gpt-oss-20b, quant.scope: all}}]\n"),
            (Names{kBlocks, "fp4 bf16 32 all kv bf16", kBlocks, "fp4 bf16 32 all kv bf16"}));
  EXPECT_EQ(formats_of(start +
                       "  - concat: [{name: a, base: {model: deepseek-v3}, axes: [step.batch: [1, "
                       "2], quant.activations: {values: [bf16], when: step.batch == 1}]}]\n"),
            (Names{"fp8 bf16 128 all kv bf16", kBlocks}));
}

std::vector<std::string> hosts_of(const std::string& text) {
  std::vector<std::string> names;
  for (const engine::Scenario& point : points_of(text)) names.push_back(point.host.name);
  const auto spec = read(text);
  std::vector<std::string> again;
  for (const engine::Scenario& point : points_of(spec ? spec->resolved : "")) {
    again.push_back(point.host.name);
  }
  EXPECT_EQ(names, again) << (spec ? spec->resolved : "");
  return names;
}

TEST(WhatFollows, AnEnginesHostStaysBesideASubSweepThatNamesAnother) {
  const std::string start = "base: {device: h200-sxm, model: llama-3.1-8b, ";
  const std::string branches = "  - concat: [{name: a}, {name: b, base: {host: none}}]\n";
  EXPECT_EQ(hosts_of(start + "serving: sglang}\naxes:\n" + branches), (Names{"sglang", "none"}));
  EXPECT_EQ(hosts_of(start + "step.batch: 1}\naxes:\n  - serving: [sglang, vllm-v1]\n" + branches),
            (Names{"sglang", "none", "vllm-v1", "none"}));
  EXPECT_EQ(hosts_of(start + "serving: sglang}\naxes:\n  - step.batch: [1, 2]\n"
                             "  - host: {values: [none], when: step.batch == 1}\n"),
            (Names{"none", "sglang"}));
}

TEST(WhatFollows, WhatTrainsAndWhatServesNeedOneStatement) {
  const auto spec = read(
      "base: {device: h200-sxm, model: deepseek-v3, train.sequence: 1024}\naxes:\n"
      "  - task: [step, train]\n"
      "  - concat: [{name: a}, {name: b, base: {quant.activations: bf16}}]\n");
  ASSERT_FALSE(spec);
  EXPECT_EQ(engine::to_text({spec.mistakes().front()}),
            "sweep.yaml:1:1: error: 'quant.activations' is stated for some points only, where some "
            "points train and a model is published in formats of its own\n"
            "  hint: state it for all points, under 'base:' or in every value of an axis\n");
}

}  // namespace
}  // namespace sweep

// The shipped settings of engines say what their kernels are.
#include <gtest/gtest.h>

#include "engine/engine_kernels.h"
#include "sweep/language/load_spec.h"
#include "tests/support/paths.h"
#include "tests/sweep/sweep_fixture.h"

namespace sweep {
namespace {

const Library& library() {
  static const Library shipped({paths::specs()});
  return shipped;
}

engine::ModelShard shard_under(const std::string& serving, const std::string& device,
                               const engine::ModelSpec& model) {
  const auto settings = read_named(library(), "serving", serving);
  const auto hardware = read_named(library(), "devices", device);
  EXPECT_TRUE(settings.ok() && hardware.ok()) << serving << " " << device;
  engine::ModelShard shard = engine::shard_of(model, {}, {});
  const engine::Device& built = hardware->scenario.device;
  engine::choose_kernels(settings->scenario.serving, built, engine::fabric_of({}, built), shard);
  return shard;
}

TEST(ServingSpecs, OnlyEnginesWithFlashAttention2JoinBatchesAndSplitEvenly) {
  engine::ModelSpec model;
  model.kv_heads = model.heads = 8;
  for (const std::string& name : library().names("serving")) {
    const bool flash = name.starts_with("vllm-v1");
    for (const char* device : {"a100-80gb-sxm", "rtx-pro-6000"}) {
      const engine::ModelShard shard = shard_under(name, device, model);
      EXPECT_EQ(shard.joined_attention, flash) << name << " on " << device;
      EXPECT_EQ(shard.even_parts, flash) << name << " on " << device;
    }
    for (const char* device : {"h100-sxm", "b200-sxm", "mi300x"}) {
      const engine::ModelShard shard = shard_under(name, device, model);
      EXPECT_FALSE(shard.joined_attention || shard.even_parts) << name << " on " << device;
    }
  }
}

TEST(ServingSpecs, EachEngineHasTheAllReducesItBrings) {
  engine::ModelSpec model;
  for (const std::string& name : library().names("serving")) {
    EXPECT_EQ(shard_under(name, "a100-80gb-sxm", model).all_reduce,
              name == "sarathi" ? engine::AllReduce::nccl
              : name == "tensorrt-llm" || name == "tensorrt-llm-throughput"
                  ? engine::AllReduce::one_shot
                  : engine::AllReduce::custom)
        << name;
  }
}

// Sessions would read their whole history at every turn otherwise.
TEST(ServingSpecs, EnginesKeepPrefixesWhereThatIsTheirDefault) {
  for (const std::string& name : library().names("serving")) {
    const bool keeps = name.starts_with("vllm-v1") || name == "sglang" || name == "tensorrt-llm";
    EXPECT_EQ(read_named(library(), "serving", name)->scenario.serving.prefix_caching, keeps)
        << name;
  }
}

}  // namespace
}  // namespace sweep

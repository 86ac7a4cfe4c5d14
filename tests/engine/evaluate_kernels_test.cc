// An engine's kernels follow from its settings and the device's generation, never from its policy.
#include <gtest/gtest.h>

#include "engine/base/enum_names.h"
#include "engine/comm/collective_time.h"
#include "engine/engine_kernels.h"
#include "tests/support/calibrations.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

Device a100() {
  Device device = toys::gpu();
  device.vendor = "NVIDIA";
  device.architecture = "Ampere";
  device.shared_memory = Bytes{164.0 * 1024};
  device.scale_up.bandwidth = BytesPerSecond{300e9};
  return device;
}

ModelShard chosen(const ServingSettings& serving, const Device& device, const ModelSpec& model) {
  ModelShard shard = shard_of(model, {}, {});
  choose_kernels(serving, device, fabric_of({}, device), shard);
  return shard;
}

TEST(EngineKernels, PoliciesChooseNone) {
  const ModelSpec model = toys::model();
  for (std::size_t i = 0; i < kPolicies.size(); ++i) {
    ServingSettings serving;
    serving.policy = static_cast<PolicyName>(i);
    const ModelShard shard = chosen(serving, a100(), model);
    EXPECT_FALSE(shard.joined_attention) << kPolicies[i].name;
    EXPECT_FALSE(shard.even_parts) << kPolicies[i].name;
  }
}

// TensorRT-LLM writes straight into the memory of devices that one switch joins, and gathers over anything else.
TEST(EngineKernels, ASwitchThatJoinsAllDevicesDecidesHowExpertsAreReached) {
  const auto travel = [](Topology topology, std::int64_t joined, std::int64_t sharing) {
    Device device = a100();
    device.scale_up.topology = topology;
    device.scale_up.devices = joined;
    ServingSettings serving;
    serving.expert_exchange = ExpertTravel::switched;
    const ModelSpec model = toys::model();
    ModelShard shard = shard_of(model, {}, {});
    shard.parallel.ep = sharing;
    choose_kernels(serving, device, fabric_of({}, device), shard);
    return shard.expert_travel;
  };
  EXPECT_EQ(travel(Topology::fabric, 8, 8), ExpertTravel::automatic);
  EXPECT_EQ(travel(Topology::fabric, 8, 16), ExpertTravel::gathered);
  EXPECT_EQ(travel(Topology::fabric, 72, 64), ExpertTravel::automatic);
  EXPECT_EQ(travel(Topology::mesh, 8, 8), ExpertTravel::gathered);
}

TEST(EngineKernels, FlashAttentionFollowsTheGeneration) {
  const ModelSpec model = toys::model();
  ServingSettings serving;
  serving.attention = AttentionKernels::flash_attention;
  EXPECT_TRUE(chosen(serving, a100(), model).joined_attention);
  EXPECT_TRUE(chosen(serving, a100(), model).even_parts);
  for (const char* other : {"Hopper", "Blackwell", "CDNA 3", ""}) {
    Device device = a100();
    device.architecture = other;
    EXPECT_FALSE(chosen(serving, device, model).joined_attention) << other;
    EXPECT_FALSE(chosen(serving, device, model).even_parts) << other;
  }
  Device renamed = a100();
  renamed.name = renamed.vendor = "mine";
  EXPECT_TRUE(chosen(serving, renamed, model).joined_attention);
  EXPECT_FALSE(chosen(serving, a100(), toys::latent()).joined_attention);
}

TEST(EngineKernels, WhatIsStatedIsObeyed) {
  const ModelSpec model = toys::model();
  ServingSettings serving;
  serving.mixed_attention = MixedAttention::joined;
  serving.decode_parts = DecodeParts::even;
  EXPECT_TRUE(chosen(serving, toys::gpu(), model).joined_attention);
  EXPECT_TRUE(chosen(serving, toys::gpu(), model).even_parts);
  serving.attention = AttentionKernels::flash_attention;
  serving.mixed_attention = MixedAttention::separate;
  serving.decode_parts = DecodeParts::by_length;
  EXPECT_FALSE(chosen(serving, a100(), model).joined_attention);
  EXPECT_FALSE(chosen(serving, a100(), model).even_parts);
}

double reduce_time(AllReduce kind, std::int64_t sequences, const Device& device) {
  const ModelSpec model = toys::model();
  ModelShard shard = shard_of(model, {.tp = 4}, {});
  shard.all_reduce = kind;
  BatchShape batch;
  add_decode(batch, sequences, 1024, 0);
  OpList ops;
  token_ops(shard, batch, ops);
  const Fabric fabric = fabric_of(Cluster{}, device);
  double time = 0;
  for (const PlannedOp& planned : ops) {
    if (planned.family != Family::all_reduce) continue;
    const auto& op = std::get<Collective>(planned.op);
    time += planned.calls * collective_time(op, fabric, device, &toys::transfer()).total().value;
  }
  return time;
}

TEST(EngineKernels, ItsOwnAllReduceIsNeverSlowerThanTheLibraryAlone) {
  for (std::int64_t sequences = 1; sequences <= 4096; sequences *= 4) {
    EXPECT_LE(reduce_time(AllReduce::custom, sequences, a100()),
              reduce_time(AllReduce::nccl, sequences, a100()))
        << sequences;
  }
  // Small messages are what engines write their own for.
  EXPECT_LT(reduce_time(AllReduce::custom, 1, a100()),
            0.6 * reduce_time(AllReduce::nccl, 1, a100()));
}

// One kernel of its own is worth as much as all where messages are small, and nothing where they are large.
TEST(EngineKernels, OneShotIsForSmallMessagesAndElseTheLibrary) {
  for (std::int64_t sequences = 1; sequences <= 4096; sequences *= 4) {
    const double one_shot = reduce_time(AllReduce::one_shot, sequences, a100());
    EXPECT_GE(one_shot, reduce_time(AllReduce::custom, sequences, a100())) << sequences;
    EXPECT_LE(one_shot, reduce_time(AllReduce::nccl, sequences, a100())) << sequences;
  }
  EXPECT_NEAR(
      reduce_time(AllReduce::one_shot, 1, a100()) / reduce_time(AllReduce::custom, 1, a100()), 1,
      1e-3);
  EXPECT_EQ(reduce_time(AllReduce::one_shot, 4096, a100()),
            reduce_time(AllReduce::nccl, 4096, a100()));
}

// Norms of a decode of a mixture on eight devices.
double norm_calls(AllReduce kind, const Device& device, const Parallelism& parallel,
                  std::int64_t sequences) {
  const ModelSpec model = toys::mixture();
  ModelShard shard = shard_of(model, parallel, {});
  choose_kernels({.all_reduce = kind}, device, fabric_of({}, device), shard);
  BatchShape batch;
  add_decode(batch, sequences, 1024, 0);
  OpList ops;
  token_ops(shard, batch, ops);
  double calls = 0;
  for (const PlannedOp& planned : ops) {
    if (planned.family == Family::norm) calls += planned.calls;
  }
  return calls;
}

// TensorRT-LLM's one-shot kernel adds the residual and normalises around experts (PRE_MOE_FUSION, POST_MOE_FUSION); NCCL, which it calls
// for large sums, for other links and between nodes, does not.
TEST(EngineKernels, SumsInOneShotNormaliseAroundExperts) {
  const Device device = a100();
  const double all = norm_calls(AllReduce::custom, device, {.tp = 8, .ep = 8}, 4);
  const double mixtures = double(shard_of(toys::mixture(), {}, {}).layers.mixture);
  ASSERT_GT(mixtures, 0);
  EXPECT_EQ(norm_calls(AllReduce::one_shot, device, {.tp = 8, .ep = 8}, 4), all - 2 * mixtures);
  EXPECT_EQ(norm_calls(AllReduce::one_shot, device, {.tp = 8, .ep = 8}, 4096), all);
  // A pipeline sends what comes out of experts on, and has its norm done where it arrives.
  EXPECT_EQ(norm_calls(AllReduce::one_shot, device, {.tp = 4, .pp = 2, .ep = 4}, 4),
            norm_calls(AllReduce::custom, device, {.tp = 4, .pp = 2, .ep = 4}, 4) - mixtures);
  EXPECT_EQ(norm_calls(AllReduce::one_shot, device, {.tp = 1}, 4),
            norm_calls(AllReduce::custom, device, {.tp = 1}, 4));
  Device unlinked = device;
  unlinked.scale_up = Link{};
  EXPECT_EQ(norm_calls(AllReduce::one_shot, unlinked, {.tp = 8, .ep = 8}, 4), all);
  Device of_four = device;
  of_four.scale_up.devices = 4;
  EXPECT_EQ(norm_calls(AllReduce::one_shot, of_four, {.tp = 8, .ep = 8}, 4), all);
}

double quantize_calls(const ModelSpec& model, const Parallelism& parallel,
                      const ServingSettings& serving) {
  ModelShard shard =
      shard_of(model, parallel, {.weights = Dtype::fp8, .activations = Dtype::fp8, .group = 128});
  choose_kernels(serving, a100(), fabric_of({}, a100()), shard);
  BatchShape batch;
  add_decode(batch, 4, 1024, 0);
  OpList ops;
  token_ops(shard, batch, ops);
  double calls = 0;
  for (const PlannedOp& planned : ops) {
    if (planned.name == OpName::quantize_input) calls += planned.calls;
  }
  return calls;
}

// An engine's call of experts takes 16 bits and makes them narrow, as it does between its two products. A cast of its own is there for
// shared experts, which are products like any other, and before inputs travel narrow.
TEST(EngineKernels, ExpertsMakeTheirInputsNarrowThemselves) {
  ModelSpec model = toys::mixture();
  model.moe.shared_intermediate = 0;
  const LayerCounts layers = shard_of(model, {}, {}).layers;
  const double mixtures = double(layers.mixture), all = double(layers.all() + layers.mlps());
  EXPECT_EQ(quantize_calls(model, {.tp = 2}, {}), all - mixtures);
  const Parallelism shared{.dp = 2, .ep = 2};
  EXPECT_EQ(quantize_calls(model, shared, {.narrow_exchange = true}), all);
  EXPECT_EQ(quantize_calls(model, shared, {.narrow_exchange = false}), all - mixtures);
  model.moe.shared_intermediate = 1024;
  EXPECT_EQ(quantize_calls(model, {.tp = 2}, {}), all);
}

TEST(EngineKernels, WithoutDirectLinksThereIsOnlyTheLibrary) {
  Device device = a100();
  device.scale_up = Link{};
  for (const std::int64_t sequences : {1, 64, 1024}) {
    EXPECT_EQ(reduce_time(AllReduce::one_shot, sequences, device),
              reduce_time(AllReduce::nccl, sequences, device));
    EXPECT_EQ(reduce_time(AllReduce::custom, sequences, device),
              reduce_time(AllReduce::nccl, sequences, device));
  }
}

}  // namespace
}  // namespace engine

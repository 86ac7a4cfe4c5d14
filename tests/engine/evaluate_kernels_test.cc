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

TEST(EngineKernels, WithoutDirectLinksThereIsOnlyTheLibrary) {
  Device device = a100();
  device.scale_up = Link{};
  for (const std::int64_t sequences : {1, 64, 1024}) {
    EXPECT_EQ(reduce_time(AllReduce::custom, sequences, device),
              reduce_time(AllReduce::nccl, sequences, device));
  }
}

}  // namespace
}  // namespace engine

#include "engine/engine_kernels.h"

#include <algorithm>
#include <array>

#include "engine/model/mixers/mixer.h"

namespace engine {
namespace {

// Where a library's kernels are not as a default AttentionHabits has them.
struct Exception {
  AttentionKernels kernels;
  ParameterSet generation;
  AttentionHabits habits;
};

// FlashAttention's third version needs asynchronous matrix instructions; it packs the heads of a decode
// into one tile and gives long sequences more parts. The second, on GPUs without them, does neither:
// seen in a profile of vLLM on an RTX PRO 6000, and taken for all that run the same kernels.
constexpr std::array kExceptions{
    Exception{AttentionKernels::flash_attention,
              ParameterSet::ampere,
              {MixedAttention::joined, DecodeParts::even}},
    Exception{AttentionKernels::flash_attention,
              ParameterSet::synchronous,
              {MixedAttention::joined, DecodeParts::even}},
};

// Devices of one node that read one another's memory over links of their own.
bool joined_directly(const Fabric& fabric, std::int64_t devices) {
  const LinkRates& link = fabric.scale_up;
  const bool any_to_any = link.topology == Topology::fabric || link.topology == Topology::mesh ||
                          (link.topology == Topology::pairs && devices <= 2);
  return any_to_any && devices <= std::min(fabric.devices_per_node, link.devices);
}

// Neither of the two that `switched` stands for asks where the devices are once this is known.
ExpertTravel travel_over(const Fabric& fabric, ExpertTravel asked, const Parallelism& parallel) {
  if (asked != ExpertTravel::switched) return asked;
  const LinkRates& inside = fabric.scale_up;
  const bool joined = inside.topology == Topology::fabric &&
                      parallel.ep <= std::min(fabric.devices_per_node, inside.devices);
  return joined ? ExpertTravel::automatic : ExpertTravel::gathered;
}

}  // namespace

bool attention_kernels_differ(const Device& device) {
  return std::ranges::find(kExceptions, choose_set(device), &Exception::generation) !=
         kExceptions.end();
}

AttentionHabits attention_habits(const ServingSettings& serving, ParameterSet generation) {
  AttentionHabits habits;
  for (const Exception& other : kExceptions) {
    if (other.kernels == serving.attention && other.generation == generation) habits = other.habits;
  }
  if (serving.mixed_attention != MixedAttention::automatic) habits.mixed = serving.mixed_attention;
  if (serving.decode_parts != DecodeParts::automatic) habits.parts = serving.decode_parts;
  return habits;
}

void choose_kernels(const ServingSettings& serving, const Device& device, const Fabric& fabric,
                    ModelShard& shard) {
  const AttentionHabits habits = attention_habits(serving, choose_set(device));
  const bool ordinary = joinable(*shard.model);
  shard.sampling = serving.sampling;
  shard.four_bit_experts = serving.four_bit_experts;
  shard.expert_travel = travel_over(fabric, serving.expert_exchange, shard.parallel);
  shard.narrow_exchange = serving.narrow_exchange;
  shard.shared_experts = serving.shared_experts;
  shard.narrow_outputs = serving.narrow_outputs;
  shard.lora_rank = serving.lora.rank;
  shard.lora_targets = serving.lora.targets;
  shard.all_reduce = serving.all_reduce;
  shard.normed_sums =
      serving.all_reduce == AllReduce::one_shot && joined_directly(fabric, shard.parallel.tp);
  shard.experts_quantize = true;
  shard.shared_prompts = {
      .exchange = serving.context, .devices = shard.parallel.cp, .stride = shard.parallel.tp};
  shard.two_halves = serving.two_batch_overlap && shard.expert_replicas > 1;
  shard.joined_attention = ordinary && habits.mixed == MixedAttention::joined;
  shard.overlapped_attention = ordinary && habits.mixed == MixedAttention::overlapped;
  // Kernels that divide work by its size do so with prompts, too, whatever is asked of decodes.
  shard.shared_keys =
      attention_habits({.attention = serving.attention}, choose_set(device)).parts ==
      DecodeParts::by_length;
  shard.even_parts = ordinary && habits.parts == DecodeParts::even;
}

}  // namespace engine

#include "engine/tasks/train/attention_pace.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "engine/calibration/parameter_set.h"

namespace engine {
namespace {

// Times of the GPU's fastest kernels, from the papers' own summaries; the middle of a range where they give one.
// FlashAttention-2 (Dao 2023, arXiv 2307.08691): around twice as fast as FlashAttention, on an A100.
// FlashAttention-3 (Shah et al. 2024, arXiv 2407.08608): 1.5 to 2.0 times as fast as FlashAttention-2 forward and 1.5 to
// 1.75 times backward, on an H100.
constexpr float kSecondOverFirst = 2;
constexpr float kThirdOverSecond = 1.75F, kThirdOverSecondBackward = 1.625F;

struct KernelPace {
  ParameterSet generation;
  AttentionGeneration kernels;
  float forward, backward;
};
constexpr KernelPace kPaces[] = {
    {ParameterSet::ampere, AttentionGeneration::flash_2, 1, 1},
    {ParameterSet::ampere, AttentionGeneration::flash_1, kSecondOverFirst, kSecondOverFirst},
    {ParameterSet::hopper, AttentionGeneration::flash_3, 1, 1},
    {ParameterSet::hopper, AttentionGeneration::flash_2, kThirdOverSecond,
     kThirdOverSecondBackward},
    {ParameterSet::hopper, AttentionGeneration::flash_1, kThirdOverSecond* kSecondOverFirst,
     kThirdOverSecondBackward* kSecondOverFirst},
};

}  // namespace

std::optional<Refusal> set_attention_pace(AttentionGeneration generation, const Device& device,
                                          ModelShard& shard) {
  if (generation == AttentionGeneration::best) return std::nullopt;
  const ParameterSet of = choose_set(device);
  const auto found = std::ranges::find_if(kPaces, [&](const KernelPace& pace) {
    return pace.generation == of && pace.kernels == generation;
  });
  if (found == std::end(kPaces)) {
    return Refusal{ReasonClass::unsupported,
                   fmt::format("train.attention_kernel {}: its pace on {} is not known; there are "
                               "flash_1 and flash_2 on A100s and flash_1 to flash_3 on H100s and "
                               "their relatives",
                               name_of(generation), device.name)};
  }
  shard.attention_slower = found->forward;
  shard.attention_backward_slower = found->backward;
  return std::nullopt;
}

}  // namespace engine

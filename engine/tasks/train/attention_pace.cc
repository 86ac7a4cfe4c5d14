#include "engine/tasks/train/attention_pace.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "engine/calibration/parameter_set.h"

namespace engine {
namespace {

// Times of the GPU's fastest kernels.
// FlashAttention-2 (Dao 2023, arXiv 2307.08691, section 4.1, A100): around twice as fast as FlashAttention; 1.3 to 1.5 times
// as fast as FlashAttention in Triton forward, of which this is the middle, and around twice backward.
// Second on third generation: medians of 28 shapes each way on our H200 (PyTorch's FlashAttention-2 over cuDNN,
// specs/calibration/h200-sxm/train_kernels.csv); FlashAttention-3's paper (Shah et al. 2024, arXiv 2407.08608) says 1.5 to
// 2.0 forward and 1.5 to 1.75 backward.
constexpr float kSecondOverFirst = 2;
constexpr float kSecondOverTriton = 1.4F, kSecondOverTritonBackward = 2;
constexpr float kThirdOverSecond = 1.89F, kThirdOverSecondBackward = 1.74F;

struct KernelPace {
  ParameterSet generation;
  AttentionGeneration kernels;
  float forward, backward;
};
constexpr KernelPace kPaces[] = {
    {ParameterSet::ampere, AttentionGeneration::flash_2, 1, 1},
    {ParameterSet::ampere, AttentionGeneration::flash_1, kSecondOverFirst, kSecondOverFirst},
    {ParameterSet::ampere, AttentionGeneration::triton, kSecondOverTriton,
     kSecondOverTritonBackward},
    {ParameterSet::hopper, AttentionGeneration::flash_3, 1, 1},
    {ParameterSet::hopper, AttentionGeneration::flash_2, kThirdOverSecond,
     kThirdOverSecondBackward},
    {ParameterSet::hopper, AttentionGeneration::flash_1, kThirdOverSecond* kSecondOverFirst,
     kThirdOverSecondBackward* kSecondOverFirst},
    {ParameterSet::hopper, AttentionGeneration::triton, kThirdOverSecond* kSecondOverTriton,
     kThirdOverSecondBackward* kSecondOverTritonBackward},
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
                               "triton, flash_1 and flash_2 on A100s, and flash_3 too on H100s "
                               "and their relatives",
                               name_of(generation), device.name)};
  }
  shard.attention_slower = found->forward;
  shard.attention_backward_slower = found->backward;
  return std::nullopt;
}

}  // namespace engine

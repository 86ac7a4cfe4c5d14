#include "engine/tasks/train/attention_pace.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstdint>
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

// Heads are padded to whole tiles: on an H200 cuDNN takes as long for 80 and 96 values as for 128, FlashAttention-2 for 80 as
// for 96 (train_kernels.csv); the one in Triton takes powers of two.
struct Tiles {
  std::int64_t values = 1;  // a width is a multiple of these
  bool powers_of_two = false;
};
constexpr Tiles kCudnn{64}, kFlash{32}, kTriton{16, true};

struct KernelPace {
  ParameterSet generation;
  AttentionGeneration kernels;
  float forward, backward;
  Tiles tiles;
};
constexpr KernelPace kPaces[] = {
    {ParameterSet::ampere, AttentionGeneration::best, 1, 1, kFlash},
    {ParameterSet::ampere, AttentionGeneration::flash_2, 1, 1, kFlash},
    {ParameterSet::ampere, AttentionGeneration::flash_1, kSecondOverFirst, kSecondOverFirst,
     kFlash},
    {ParameterSet::ampere, AttentionGeneration::triton, kSecondOverTriton,
     kSecondOverTritonBackward, kTriton},
    {ParameterSet::hopper, AttentionGeneration::best, 1, 1, kCudnn},
    {ParameterSet::hopper, AttentionGeneration::flash_3, 1, 1, kCudnn},
    {ParameterSet::hopper, AttentionGeneration::flash_2, kThirdOverSecond, kThirdOverSecondBackward,
     kFlash},
    {ParameterSet::hopper, AttentionGeneration::flash_1, kThirdOverSecond* kSecondOverFirst,
     kThirdOverSecondBackward* kSecondOverFirst, kFlash},
    {ParameterSet::hopper, AttentionGeneration::triton, kThirdOverSecond* kSecondOverTriton,
     kThirdOverSecondBackward* kSecondOverTritonBackward, kTriton},
};

// How many times longer padded heads take. Exponentials, whose number does not depend on the width, take as long as products of 56 values
// forward and 46 backward (heads of 64 and 128 values of the same table).
float padded_pace(std::int64_t width, const Tiles& tiles) {
  constexpr float exponentials = 50;
  std::int64_t padded = (width + tiles.values - 1) / tiles.values * tiles.values;
  if (tiles.powers_of_two) padded = std::int64_t(std::bit_ceil(std::uint64_t(padded)));
  return (exponentials + float(padded)) / (exponentials + float(width));
}

}  // namespace

std::optional<Refusal> set_attention_pace(AttentionGeneration generation, const Device& device,
                                          ModelShard& shard) {
  const ParameterSet of = choose_set(device);
  const auto found = std::ranges::find_if(kPaces, [&](const KernelPace& pace) {
    return pace.generation == of && pace.kernels == generation;
  });
  if (found == std::end(kPaces)) {
    if (generation == AttentionGeneration::best) return std::nullopt;
    return Refusal{ReasonClass::unsupported,
                   fmt::format("train.attention_kernel {}: its pace on {} is not known; there are "
                               "triton, flash_1 and flash_2 on A100s, and flash_3 too on H100s "
                               "and their relatives",
                               name_of(generation), device.name)};
  }
  const bool latent = shard.model->mla.kv_rank > 0;
  const float padded = latent ? 1 : padded_pace(shard.model->head_dim, found->tiles);
  shard.attention_slower = found->forward * padded;
  shard.attention_backward_slower = found->backward * padded;
  return std::nullopt;
}

}  // namespace engine

// How one model is laid over devices, and in which formats its numbers are kept.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/deployment_role.h"
#include "engine/base/enum_names.h"
#include "engine/base/fields.h"
#include "engine/base/task.h"
#include "engine/hardware/dtype.h"
#include "engine/model/model_parts.h"

namespace engine {

// Who says how many second copies of experts there are, where nobody states a number.
enum class ExpertCopies : std::uint8_t {
  by_load,  // whoever places experts by their load, as recipes of engines do
  fewest,   // nobody: the fewest with which the devices divide the experts
};
constexpr std::array<std::string_view, 2> enum_names(ExpertCopies) { return {"by_load", "fewest"}; }

struct Parallelism;
// Whether tokens of several replicas meet at experts that lie on more devices than a host has.
bool shared_by_hosts(const Parallelism& parallel);
inline constexpr const Condition& with_hosts_sharing_experts = said<
    "more than 8 devices share experts, and more than one replica does (parallel.ep above "
    "parallel.tp)",
    has<"parallel", shared_by_hosts>>;
bool leaves_copies_open(const Parallelism& parallel);
inline constexpr const Condition& with_copies_left_open =
    said<"parallel.redundant_experts is auto", has<"parallel", leaves_copies_open>>;
inline constexpr const Condition& with_untrained_experts =
    said<"task {}: copies would be trained apart", unless_training>;

struct Parallelism {
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t dp = 1;
  std::int64_t ep = 1;
  std::int64_t cp = 1;
  std::int64_t redundant_experts = std::int64_t(kWordOnly);  // as expert_copies says
  ExpertCopies expert_copies = ExpertCopies::by_load;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("tp", self.tp, "tensor parallel: devices that share every layer", between(1, 1 << 15));
    visit("pp", self.pp, "pipeline parallel: stages of consecutive layers", between(1, 1 << 15));
    visit("dp", self.dp, "data parallel: replicas of the model", between(1, 1 << 20));
    visit("ep", self.ep, "expert parallel: devices that share the routed experts",
          between(1, 1 << 15));
    visit("cp", self.cp, "context parallel: devices that share a sequence",
          between(1, 1 << 10).where(where_prompts_are_split));
    visit("redundant_experts", self.redundant_experts,
          "second copies of the most popular experts, spread over the ep devices; experts and "
          "copies together must be a multiple of ep; 0: none; auto: as expert_copies says "
          "(second_copies has how many there are)",
          non_negative_beside("auto").where(unless_convolving));
    visit("expert_copies", self.expert_copies,
          "how many second copies there are where redundant_experts is auto; by_load: as engines' "
          "recipes place them: none on up to 8 devices, beyond that at least an eighth of the "
          "experts (32 of DeepSeek-V3's 256), and one more on each device where the busiest "
          "copy would leave its device with a third more than the mean; fewest: those that make "
          "ep divide the experts, as where no balancer runs",
          any_value.where(unless_convolving)
              .where(with_untrained_experts)
              .where(with_experts)
              .where(with_copies_left_open)
              .where(with_hosts_sharing_experts));
  }

  bool states_copies() const { return redundant_experts >= 0; }

  // The ranges above keep this far from overflow.
  std::int64_t devices() const { return tp * pp * dp * cp; }
  std::int64_t devices_of_replica() const { return tp * pp * cp; }
  bool replicas_share_experts() const { return ep > tp; }
  bool replicas_have_experts() const { return ep <= tp; }

  bool operator==(const Parallelism&) const = default;
};

inline bool leaves_copies_open(const Parallelism& parallel) { return !parallel.states_copies(); }

// Which matrices are kept in the formats below. Mixture models are often published with narrow experts
// and everything else in 16 bits (gpt-oss), others with attention in 16 bits (Llama 3.1 405B in fp8).
enum class QuantScope : std::uint8_t { all, experts, mlps };
constexpr std::array<std::string_view, 3> enum_names(QuantScope) {
  return {"all", "experts", "mlps"};
}

inline constexpr const Condition& with_narrow_products =
    either<"quant.weights or quant.activations is narrower than 16 bits",
           is_such<"quant.weights", has_scales>, is_such<"quant.activations", has_scales>>;
inline constexpr const Condition& with_narrow_inputs =
    said<"quant.activations is narrower than 16 bits", is_such<"quant.activations", has_scales>>;

struct Quantization {
  Dtype weights = Dtype::bf16;
  Dtype activations = Dtype::bf16;
  Dtype kv = Dtype::bf16;
  Dtype state = Dtype::fp32;  // it adds up over all tokens, so engines keep it in 32 bits
  std::int64_t group = 128;
  QuantScope scope = QuantScope::all;

  // fp8 with one scale for a tensor or a token, or for a block of more values than matrix units scale as they multiply.
  bool has_one_scale() const { return activations == Dtype::fp8 && group > kLargestBlock; }
  bool has_blocks() const {
    return activations == Dtype::fp8 && group > 32 && group <= kLargestBlock;
  }

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("weights", self.weights, "format of the layers' matrices", any_value);
    visit("activations", self.activations, "format of matrix inputs; arithmetic runs in it",
          any_value);
    visit("kv", self.kv, "format of the KV cache", any_value.where(unless_training));
    visit("state", self.state,
          "format of the states of scan layers (model.scan), which are kept beside the KV cache",
          any_value.where(unless_training).where(with_scans));
    visit(
        "group", self.group,
        "weights that share a scale: 16 bits a group of integers, 8 bits of fp4 (NVFP4: 16, MXFP4: "
        "32) or of fp8 up to 32; fp8 is scaled by square blocks up to 256 (DeepSeek), by channel "
        "or tensor above (FP8 Llama: 1024)",
        at_least(1).where(with_narrow_products));
    visit("scope", self.scope,
          "which matrices are in these formats, the others in 16 bits: all; mlps, experts among "
          "them, but not attention's and scans' projections; experts, routed ones alone",
          any_value.where(with_narrow_products));
  }

  bool operator==(const Quantization&) const = default;
};

// Products of 8-bit values with a scale for a few of them (MXFP8: 32), which matrix units apply as they multiply.
constexpr bool is_microscaled(const Quantization& quant) {
  return quant.weights == Dtype::fp8 && quant.activations == Dtype::fp8 && quant.group <= 32;
}

}  // namespace engine

// Names of operations, families and phases, as they appear in the kernels table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"

namespace engine {

// Parts of the work: of steps that serve, then of steps that train.
enum class Phase : std::uint8_t {
  prefill,
  decode,
  mixed,
  forward,
  backward,
  recompute,
  gradients,  // between replicas
  optimizer,
};
constexpr std::array<std::string_view, 8> enum_names(Phase) {
  return {"prefill",  "decode",    "mixed",     "forward",
          "backward", "recompute", "gradients", "optimizer"};
}
constexpr std::size_t kServedPhases = 3;

// Kernels that share a cost model.
enum class Family : std::uint8_t {
  gemm,
  grouped_gemm,
  moe,
  attn_prefill,
  attn_decode,
  mla_prefill,
  mla_decode,
  mla_gen_pre,
  mla_gen_post,
  linear_attention,
  convolution,
  norm,
  residual,
  rope,
  act,
  embed,
  kv_write,
  sample,
  quantize,
  route,
  lora,
  copy,
  copy_h2d,
  copy_d2h,
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  send_recv,
  gap,
  host,
  expert_dispatch,  // of kernel tables only: in steps both are all-to-alls
  expert_combine,
};
constexpr std::array<std::string_view, 33> enum_names(Family) {
  return {"gemm",
          "grouped_gemm",
          "moe",
          "attn_prefill",
          "attn_decode",
          "mla_prefill",
          "mla_decode",
          "mla_gen_pre",
          "mla_gen_post",
          "linear_attention",
          "convolution",
          "norm",
          "residual",
          "rope",
          "act",
          "embed",
          "kv_write",
          "sample",
          "quantize",
          "route",
          "lora",
          "copy",
          "copy_h2d",
          "copy_d2h",
          "all_reduce",
          "all_gather",
          "reduce_scatter",
          "all_to_all",
          "send_recv",
          "gap",
          "host",
          "expert_dispatch",
          "expert_combine"};
}

constexpr bool is_attention(Family family) {
  return family == Family::attn_prefill || family == Family::attn_decode ||
         family == Family::mla_prefill || family == Family::mla_decode;
}

// What an operation is for in the model.
enum class OpName : std::uint8_t {
  embedding,
  input_norm,
  qkv,
  q_down,
  q_up,
  kv_down,
  kv_up,
  q_absorb,
  v_absorb,
  qk_norm,
  rope,
  attention,
  attention_window,
  attention_out,
  attention_reduce,
  mlp_norm,
  router,
  gate_up,
  up,
  activation,
  down,
  shared_gate_up,
  shared_activation,
  shared_down,
  expert_dispatch,
  experts,
  expert_combine,
  mlp_reduce,
  quantize_input,
  quantize_attention,
  quantize_mlp,
  final_norm,
  logits,
  logits_gather,
  sampling,
  stage_transfer,
  kv_transfer,
  loss,
  gradient_sum,
  weight_gather,
  optimizer,
  gap,
  host,
  draft_product,
};
constexpr std::array<std::string_view, 44> enum_names(OpName) {
  return {"embedding",
          "input_norm",
          "qkv",
          "q_down",
          "q_up",
          "kv_down",
          "kv_up",
          "q_absorb",
          "v_absorb",
          "qk_norm",
          "rope",
          "attention",
          "attention_window",
          "attention_out",
          "attention_reduce",
          "mlp_norm",
          "router",
          "gate_up",
          "up",
          "activation",
          "down",
          "shared_gate_up",
          "shared_activation",
          "shared_down",
          "expert_dispatch",
          "experts",
          "expert_combine",
          "mlp_reduce",
          "quantize_input",
          "quantize_attention",
          "quantize_mlp",
          "final_norm",
          "logits",
          "logits_gather",
          "sampling",
          "stage_transfer",
          "kv_transfer",
          "loss",
          "gradient_sum",
          "weight_gather",
          "optimizer",
          "gap",
          "host",
          "draft_product"};
}

}  // namespace engine

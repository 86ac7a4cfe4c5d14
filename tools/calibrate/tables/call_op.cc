#include "tools/calibrate/tables/call_op.h"

#include <algorithm>
#include <cstdint>

#include "engine/model/batch_shape.h"

namespace tools {
namespace {

using engine::Dtype;
using engine::Family;

// DeepSeek's latent attention, whose widths kernel tables leave out.
constexpr std::int64_t kLatentRank = 512;
constexpr std::int64_t kLatentRope = 64;
constexpr std::int64_t kLatentNope = 128;
constexpr std::int64_t kLatentValue = 128;

constexpr double kActivationBytes = 2;

struct Formats {
  Dtype weights = Dtype::bf16;
  Dtype activations = Dtype::bf16;
  std::int64_t group = 128;  // weights that share a scale
};

// One scale a row or tensor: so many weights share it that its bytes do not count.
constexpr std::int64_t kWholeRow = 1 << 20;

Formats formats_of(Format format) {
  switch (format) {
    case Format::bf16:
      return {};
    case Format::fp16:
      return {Dtype::fp16, Dtype::fp16};
    case Format::fp32:
      return {Dtype::fp32, Dtype::fp32};
    case Format::fp8:
      return {Dtype::fp8, Dtype::fp8, kWholeRow};
    case Format::fp8_block:
      return {Dtype::fp8, Dtype::fp8, 128};
    case Format::nvfp4:
      return {Dtype::fp4, Dtype::fp4, 16};
    case Format::int8:
    case Format::sq:
      return {Dtype::int8, Dtype::int8, kWholeRow};
    case Format::int8_wo:
      return {Dtype::int8, Dtype::bf16, kWholeRow};
    case Format::int4_wo:
      return {Dtype::int4, Dtype::bf16, 128};
    case Format::w4a16_mxfp4:
      return {Dtype::fp4, Dtype::bf16, 32};
    case Format::w4a8_mxfp4_mxfp8:
      return {Dtype::fp4, Dtype::fp8, 32};
  }
  return {};
}

std::int64_t whole(double value) { return std::int64_t(value); }

engine::Op gemm_op(const KernelCall& call) {
  const Formats formats = formats_of(call.dtype);
  if (call.family == Family::grouped_gemm) {
    const double experts = call[Size::experts];
    return engine::GroupedGemm{.rows = call[Size::m],
                               .touched = std::min(call[Size::m], experts),
                               .n = whole(call[Size::n]),
                               .k = whole(call[Size::k]),
                               .weights = formats.weights,
                               .activations = formats.activations,
                               .group = formats.group};
  }
  engine::Gemm gemm{.weights = formats.weights,
                    .activations = formats.activations,
                    .group = formats.group,
                    .quantizes_input = call.quantizes_input};
  if (call.family == Family::gemm) {
    gemm.m = whole(call[Size::m]);
    gemm.n = whole(call[Size::n]);
    gemm.k = whole(call[Size::k]);
  } else {
    const bool pre = call.family == Family::mla_gen_pre;
    gemm.m = whole(call[Size::tokens]);
    gemm.n = pre ? kLatentRank : kLatentValue;
    gemm.k = pre ? kLatentNope : kLatentRank;
    gemm.batch = whole(call[Size::q_heads]);
  }
  return gemm;
}

engine::Op prefill_op(const KernelCall& call) {
  const double batch = call[Size::batch], query = call[Size::query_len];
  const double context = call[Size::context_len], window = call[Size::window];
  engine::AttentionPrefill op{
      .sequences = whole(batch),
      .tokens = batch * query,
      .pairs = batch * engine::causal_pairs(query, context - query, window),
      .kv_tokens = batch * (window > 0 ? std::min(context, window + query - 1) : context),
      .heads = whole(call[Size::q_heads]),
      .window = whole(window),
      .stores_kv = call.stores_kv,
      .kv = formats_of(call.kv_dtype).weights,
      .activations = formats_of(call.dtype).activations};
  if (call.family == Family::mla_prefill) {
    op.kv_heads = op.heads;
    op.key_dim = kLatentNope + kLatentRope;
    op.value_dim = kLatentValue;
    op.latent = kLatentRank + kLatentRope;
  } else {
    op.kv_heads = whole(call[Size::kv_heads]);
    op.key_dim = op.value_dim = whole(call[Size::head_dim]);
    // One new token over cached ones: a decode that the kernel for prompts was given.
    op.decodes = query == 1 && context > 1;
  }
  return op;
}

engine::Op decode_op(const KernelCall& call) {
  const double window = call[Size::window];
  const double keys =
      window > 0 ? std::min(window, call[Size::context_len]) : call[Size::context_len];
  engine::AttentionDecode op{.sequences = whole(call[Size::batch]),
                             .kv_tokens = call[Size::batch] * keys,
                             .heads = whole(call[Size::q_heads]),
                             .window = whole(window),
                             .warm = call.warm,
                             .stores_kv = call.stores_kv,
                             .kv = formats_of(call.kv_dtype).weights,
                             .activations = formats_of(call.dtype).activations};
  if (call.family == Family::mla_decode) {
    op.kv_heads = 1;
    op.key_dim = kLatentRank + kLatentRope;
    op.value_dim = kLatentRank;
    op.values_in_keys = true;
  } else {
    op.kv_heads = whole(call[Size::kv_heads]);
    op.key_dim = op.value_dim = whole(call[Size::head_dim]);
  }
  return op;
}

engine::Op moe_op(const KernelCall& call) {
  const Formats formats = formats_of(call.dtype);
  return engine::Moe{
      .tokens = call[Size::tokens],
      .hidden = whole(call[Size::hidden]),
      .intermediate = std::max<std::int64_t>(1, whole(call[Size::inter] / call[Size::tp])),
      .top_k = whole(call[Size::topk]),
      .experts = whole(call[Size::experts]),
      .local_experts = std::max<std::int64_t>(1, whole(call[Size::experts] / call[Size::ep])),
      .gated = call.gated,
      .balanced = call.skew == 0,
      .skew = call.skew,
      .weights = formats.weights,
      .activations = formats.activations,
      .group = formats.group,
      .quantizes_input = formats.activations != Dtype::bf16};
}

// The passes, counted as engine/model/model_ops.cc counts them.
engine::Op pass_op(const KernelCall& call) {
  const double tokens = call[Size::tokens];
  const double values = tokens * call[Size::hidden];
  double activations = 0, cold = 0, flops = 0;
  switch (call.family) {
    case Family::norm:
      activations = 4 * values * kActivationBytes;
      flops = 4 * values;
      break;
    case Family::act:
      activations = 3 * values * kActivationBytes;
      flops = 5 * values;
      break;
    case Family::sample:
      activations = values * kActivationBytes;
      flops = values;
      break;
    case Family::embed:
      cold = values * kActivationBytes;
      activations = values * kActivationBytes;
      break;
    default: {  // rope
      const double query = tokens * call[Size::q_heads] * call[Size::head_dim];
      const double key = tokens * call[Size::kv_heads] * call[Size::head_dim];
      activations = (2 * query + 2 * key) * kActivationBytes;
      cold = 2 * key * kActivationBytes;
      flops = 3 * (query + key);
    }
  }
  // A repeated call finds all of its operands in the cache, a cold one none; in a step some.
  (call.warm ? activations : cold) += call.warm ? cold : activations;
  (call.warm ? cold : activations) = 0;
  return engine::Elementwise{
      .rows = tokens, .resident_bytes = activations, .cold_bytes = cold, .flops = flops};
}

engine::Op collective_op(const KernelCall& call) {
  engine::Collective op{.bytes = call[Size::bytes], .ranks = whole(call[Size::ranks])};
  op.library = call.library;
  if (call[Size::nodes] > 1) op.per_node = whole(call[Size::ranks] / call[Size::nodes]);
  switch (call.family) {
    case Family::all_gather:
      op.pattern = engine::Pattern::all_gather;
      break;
    case Family::reduce_scatter:
      op.pattern = engine::Pattern::reduce_scatter;
      break;
    case Family::all_to_all:
      op.pattern = engine::Pattern::all_to_all;
      break;
    case Family::send_recv:
      op.pattern = engine::Pattern::send_recv;
      break;
    default:
      op.pattern = engine::Pattern::all_reduce;
  }
  return op;
}

engine::Op exchange_op(const KernelCall& call) {
  using Exchange = engine::ExpertExchange;
  const bool combine = call.family == Family::expert_combine;
  return Exchange{.way = combine ? Exchange::Way::combine : Exchange::Way::dispatch,
                  .tokens = call[Size::tokens],
                  .hidden = whole(call[Size::hidden]),
                  .top_k = whole(call[Size::topk]),
                  .experts = whole(call[Size::experts]),
                  .ranks = whole(call[Size::ranks]),
                  .value_bytes = call.dtype == Format::fp8 ? 1.0 : kActivationBytes,
                  .kernels = call.exchange,
                  .multiprocessors = whole(call[Size::sms])};
}

}  // namespace

engine::Op op_of(const KernelCall& call) {
  switch (call.family) {
    case Family::gemm:
    case Family::grouped_gemm:
    case Family::mla_gen_pre:
    case Family::mla_gen_post:
      return gemm_op(call);
    case Family::attn_prefill:
    case Family::mla_prefill:
      return prefill_op(call);
    case Family::attn_decode:
    case Family::mla_decode:
      return decode_op(call);
    case Family::moe:
      return moe_op(call);
    case Family::quantize:
      return engine::Quantize{
          .rows = call[Size::tokens], .width = call[Size::hidden], .cold = !call.warm};
    case Family::copy:
      return engine::Copy{.bytes = call[Size::bytes]};
    case Family::copy_h2d:
      return engine::Copy{.bytes = call[Size::bytes], .path = engine::CopyPath::host_to_device};
    case Family::copy_d2h:
      return engine::Copy{.bytes = call[Size::bytes], .path = engine::CopyPath::device_to_host};
    case Family::all_reduce:
    case Family::all_gather:
    case Family::reduce_scatter:
    case Family::all_to_all:
    case Family::send_recv:
      return collective_op(call);
    case Family::expert_dispatch:
    case Family::expert_combine:
      return exchange_op(call);
    default:
      return pass_op(call);
  }
}

}  // namespace tools

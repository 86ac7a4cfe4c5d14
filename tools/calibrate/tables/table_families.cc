#include "tools/calibrate/tables/table_families.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "engine/model/batch_shape.h"
#include "engine/model/passes.h"

namespace tools {
namespace {

using engine::Dtype;
using engine::Family;

// DeepSeek's latent attention, whose widths kernel tables leave out.
constexpr std::int64_t kLatentRank = 512;
constexpr std::int64_t kLatentRope = 64;
constexpr std::int64_t kLatentNope = 128;
constexpr std::int64_t kLatentValue = 128;

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
    case Format::tf32:
      return {Dtype::tf32, Dtype::tf32};
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

engine::Op grouped_gemm_op(const KernelCall& call) {
  const Formats formats = formats_of(call.dtype);
  return engine::GroupedGemm{.rows = call[Size::m],
                             .touched = std::min(call[Size::m], call[Size::experts]),
                             .n = whole(call[Size::n]),
                             .k = whole(call[Size::k]),
                             .weights = formats.weights,
                             .activations = formats.activations,
                             .group = formats.group};
}

engine::Gemm product(const KernelCall& call) {
  const Formats formats = formats_of(call.dtype);
  return {.weights = formats.weights,
          .activations = formats.activations,
          .group = formats.group,
          .quantizes_input = call.quantizes_input};
}

engine::Op gemm_op(const KernelCall& call) {
  engine::Gemm gemm = product(call);
  gemm.m = whole(call[Size::m]);
  gemm.n = whole(call[Size::n]);
  gemm.k = whole(call[Size::k]);
  return gemm;
}

engine::Op absorbed_op(const KernelCall& call) {
  const bool pre = call.family == Family::mla_gen_pre;
  engine::Gemm gemm = product(call);
  gemm.m = whole(call[Size::tokens]);
  gemm.n = pre ? kLatentRank : kLatentValue;
  gemm.k = pre ? kLatentNope : kLatentRank;
  gemm.batch = whole(call[Size::q_heads]);
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

// A repeated call finds all of its operands in the cache, a cold one none; in a step some.
engine::Op as_measured(engine::Elementwise pass, const KernelCall& call) {
  const double bytes = pass.resident_bytes + pass.cold_bytes;
  pass.resident_bytes = call.warm ? bytes : 0;
  pass.cold_bytes = call.warm ? 0 : bytes;
  return pass;
}

engine::Op norm_op(const KernelCall& call) {
  return as_measured(engine::norm_pass(call[Size::tokens], call[Size::hidden]), call);
}
engine::Op activation_op(const KernelCall& call) {
  return as_measured(engine::activation_pass(call[Size::tokens], call[Size::hidden], true), call);
}
engine::Op embedding_op(const KernelCall& call) {
  return as_measured(engine::embedding_pass(call[Size::tokens], call[Size::hidden]), call);
}
engine::Op sampling_op(const KernelCall& call) {
  return as_measured(engine::sampling_pass(call[Size::tokens], call[Size::hidden]), call);
}
engine::Op rope_op(const KernelCall& call) {
  const double tokens = call[Size::tokens], width = call[Size::head_dim];
  return as_measured(
      engine::rope_pass(tokens, tokens * call[Size::q_heads] * width,
                        tokens * call[Size::kv_heads] * width, engine::kActivationBytes),
      call);
}

engine::Op quantize_op(const KernelCall& call) {
  return engine::Quantize{
      .rows = call[Size::tokens], .width = call[Size::hidden], .cold = !call.warm};
}

template <engine::CopyPath path>
engine::Op copy_op(const KernelCall& call) {
  return engine::Copy{.bytes = call[Size::bytes], .path = path};
}

template <engine::Pattern pattern>
engine::Op collective_op(const KernelCall& call) {
  engine::Collective op{
      .pattern = pattern, .bytes = call[Size::bytes], .ranks = whole(call[Size::ranks])};
  op.library = call.library;
  if (call[Size::nodes] > 1) op.per_node = whole(call[Size::ranks] / call[Size::nodes]);
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
                  .value_bytes = call.dtype == Format::fp8 ? 1.0 : engine::kActivationBytes,
                  .kernels = call.exchange,
                  .multiprocessors = whole(call[Size::sms])};
}

std::vector<TableFamily> all_families() {
  using engine::CopyPath;
  using engine::Pattern;
  const std::vector<Need> product = {{Size::m}, {Size::n}, {Size::k}};
  const std::vector<Need> prefill = {{Size::batch},    {Size::query_len}, {Size::context_len, 0},
                                     {Size::q_heads},  {Size::kv_heads},  {Size::head_dim},
                                     {Size::window, 0}};
  const std::vector<Need> decode = {{Size::batch},    {Size::query_len, 1}, {Size::context_len},
                                    {Size::q_heads},  {Size::kv_heads},     {Size::head_dim},
                                    {Size::window, 0}};
  const std::vector<Need> absorbed = {{Size::tokens}, {Size::q_heads}};
  const std::vector<Need> pass = {{Size::tokens}, {Size::hidden}};
  const std::vector<Need> copy = {{Size::bytes}};
  const std::vector<Need> collective = {{Size::bytes}, {Size::ranks}, {Size::nodes, 1}};
  const std::vector<Need> exchange = {{Size::tokens},  {Size::hidden}, {Size::topk},
                                      {Size::experts}, {Size::ranks},  {Size::sms, 20}};
  return {
      {Family::gemm, product, gemm_op},
      {Family::grouped_gemm, {{Size::m}, {Size::n}, {Size::k}, {Size::experts}}, grouped_gemm_op},
      {Family::attn_prefill, prefill, prefill_op},
      {Family::attn_decode, decode, decode_op},
      {Family::mla_prefill,
       {{Size::batch}, {Size::query_len}, {Size::context_len, 0}, {Size::q_heads}},
       prefill_op},
      {Family::mla_decode,
       {{Size::batch}, {Size::query_len, 1}, {Size::context_len}, {Size::q_heads}},
       decode_op},
      {Family::mla_gen_pre, absorbed, absorbed_op},
      {Family::mla_gen_post, absorbed, absorbed_op},
      {Family::moe,
       {{Size::tokens},
        {Size::hidden},
        {Size::inter},
        {Size::topk},
        {Size::experts},
        {Size::tp, 1},
        {Size::ep, 1}},
       moe_op},
      {Family::norm, pass, norm_op},
      {Family::act, pass, activation_op},
      {Family::embed, pass, embedding_op},
      {Family::sample, pass, sampling_op},
      {Family::quantize, pass, quantize_op},
      {Family::rope,
       {{Size::tokens}, {Size::q_heads}, {Size::kv_heads}, {Size::head_dim}},
       rope_op},
      {Family::copy, copy, copy_op<CopyPath::device>},
      {Family::copy_h2d, copy, copy_op<CopyPath::host_to_device>},
      {Family::copy_d2h, copy, copy_op<CopyPath::device_to_host>},
      {Family::all_reduce, collective, collective_op<Pattern::all_reduce>},
      {Family::all_gather, collective, collective_op<Pattern::all_gather>},
      {Family::reduce_scatter, collective, collective_op<Pattern::reduce_scatter>},
      {Family::all_to_all, collective, collective_op<Pattern::all_to_all>},
      {Family::send_recv, collective, collective_op<Pattern::send_recv>},
      {Family::expert_dispatch, exchange, exchange_op},
      {Family::expert_combine, exchange, exchange_op},
  };
}

}  // namespace

const TableFamily* table_family(Family family) {
  static const std::vector<TableFamily> families = all_families();
  // Rows ask one by one: the place of each family is looked up once.
  static const auto places = [] {
    std::array<const TableFamily*, engine::enum_names(Family{}).size()> found{};
    for (const TableFamily& one : families) found[static_cast<std::size_t>(one.family)] = &one;
    return found;
  }();
  return places[static_cast<std::size_t>(family)];
}

engine::Op op_of(const KernelCall& call) { return table_family(call.family)->op(call); }

}  // namespace tools

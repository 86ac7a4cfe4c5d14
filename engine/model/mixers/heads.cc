// Ordinary attention: query heads that share key/value heads, over everything or over a window.
#include <algorithm>

#include "engine/model/mixers/mixer.h"
#include "engine/model/op_builder.h"
#include "engine/model/passes.h"

namespace engine {
namespace {

std::int64_t layers(const ModelSpec& model, const LayerCounts& counts) {
  return model.is_mla() ? 0 : counts.attending();
}

// Query heads, and as many gates where there are some.
std::int64_t projected_heads(const ModelSpec& model, std::int64_t heads) {
  return model.attention_gate ? 2 * heads : heads;
}

double parameters(const ModelSpec& model) {
  const double hidden = double(model.hidden), head = double(model.head_dim);
  const double projected = head * double(projected_heads(model, model.heads) + 2 * model.kv_heads);
  const double bias = model.attention_bias ? projected : 0;
  return hidden * projected + double(model.heads) * head * hidden + bias;
}

// KV heads are repeated when there are fewer of them than devices.
double repeated_parameters(const ModelShard& shard) {
  const ModelSpec& model = *shard.model;
  return 2.0 * double(model.head_dim) * double(model.hidden) *
         (double(shard.kv_heads) - double(model.kv_heads) / double(shard.parallel.tp));
}

double cached(const ModelShard& shard, double context) {
  return cached_tokens(shard, context) * 2 * double(shard.kv_heads * shard.model->head_dim) *
         bytes_of(shard.quant.kv);
}

double buffer(const ModelShard& shard) {
  const std::int64_t queries = projected_heads(*shard.model, shard.heads);
  return double(shard.heads + queries + 2 * shard.kv_heads) * double(shard.model->head_dim);
}

MixerWidths widths(const ModelShard& shard) {
  const double query = double(shard.heads * shard.model->head_dim);
  const double keys = double(2 * shard.kv_heads * shard.model->head_dim);
  // A rotation in several kernels keeps its operands twice over, and attention in several its output (PyTorch 2.11, eager).
  // A gate is kept, and the gated output beside attention's own.
  const double gated = shard.model->attention_gate ? 2 * query : 0;
  return {.query = query + gated, .keys = keys, .output = query, .unfused = query + keys + query};
}

std::optional<Indivisible> indivisible(const ModelSpec& model, std::int64_t ways) {
  if (model.heads % ways != 0) return Indivisible{"heads", model.heads};
  if (model.kv_heads % ways != 0 && ways % model.kv_heads != 0) {
    return Indivisible{"kv_heads", model.kv_heads};
  }
  return std::nullopt;
}

// Per-head norms, rotation and the write of new keys and values into the cache.
void head_pass(const OpBuilder& build, double layers) {
  const double query = build.rows * double(build.shard.heads * build.model.head_dim);
  const double key = build.rows * double(build.shard.kv_heads * build.model.head_dim);
  if (build.model.qk_norm) {
    Elementwise norm = pass_over(build.rows, query + key, query + key, 4 * (query + key));
    norm.backward = kHeadNormBackward;
    build.ops.add(OpName::qk_norm, Family::norm, layers, norm);
  }
  const double share = build.model.turned();
  Elementwise rope = rope_pass(build.rows, share * query, key, bytes_of(build.shard.quant.kv));
  rope.flops = 3 * share * (query + key);
  build.ops.add(OpName::rope, Family::rope, layers, rope);
}

// One pass over attention's output and its gates; backward it reads both and a gradient, and writes two.
void gate_pass(const OpBuilder& build, double layers) {
  const double values = build.rows * double(build.shard.heads * build.model.head_dim);
  Elementwise gate = pass_over(build.rows, 2 * values, values, 5 * values);
  gate.backward = 5.0 / 3;
  build.ops.add(OpName::attention_gate, Family::residual, layers, gate);
}

void token_ops(const OpBuilder& build, double layers) {
  const ModelShard& shard = build.shard;
  const std::int64_t head = build.model.head_dim;
  build.ops.add(OpName::qkv, Family::gemm, layers,
                build.gemm((projected_heads(build.model, shard.heads) + 2 * shard.kv_heads) * head,
                           build.model.hidden));
  head_pass(build, layers);
  if (build.model.attention_gate) gate_pass(build, layers);
  if (build.model.attention_gate || !build.comes_narrow(NarrowOutputs::all)) {
    build.quantize(OpName::quantize_attention, layers, double(shard.heads * head));
  }
  build.ops.add(OpName::attention_out, Family::gemm, layers,
                build.gemm(build.model.hidden, shard.heads * head));
}

double overhang_of(const ModelShard& shard, const BatchShape& batch, bool beside_prompts) {
  return shard.even_parts ? decode_overhang(batch, beside_prompts) : 0;
}

void prompt_ops(const ModelShard& shard, const StageSpan& span, const BatchShape& batch,
                OpList& ops) {
  const AttentionPrefill op{.sequences = batch.prefill_sequences,
                            .tokens = double(batch.prefill_tokens),
                            .pairs = batch.prefill_pairs,
                            .kv_tokens = batch.prefill_kv_tokens,
                            .heads = shard.heads,
                            .kv_heads = shard.kv_heads,
                            .key_dim = shard.model->head_dim,
                            .value_dim = shard.model->head_dim,
                            .shares_keys = shard.shared_keys,
                            .kv = shard.mixers.kv,
                            .activations = shard.mixers.activations};
  add_prompt_attention(Family::attn_prefill, op, shard, span, batch, ops);
}

void decode_ops(const ModelShard& shard, const StageSpan& span, const BatchShape& batch,
                OpList& ops) {
  AttentionDecode op{.sequences = batch.decode_sequences,
                     .queries = batch.decode_queries,
                     .kv_tokens = batch.decode_kv_tokens + batch.later_keys(),
                     .overhang = overhang_of(shard, batch, false),
                     .heads = shard.heads,
                     .kv_heads = shard.kv_heads,
                     .key_dim = shard.model->head_dim,
                     .value_dim = shard.model->head_dim,
                     .values_in_keys = false,
                     .kv = shard.mixers.kv,
                     .activations = shard.mixers.activations};
  add_decode_attention(Family::attn_decode, op, shard, span, batch, ops);
}

void context_ops(const ModelShard& shard, const StageSpan& span, const BatchShape& batch,
                 OpList& ops) {
  if (batch.prefill_tokens > 0) prompt_ops(shard, span, batch, ops);
  if (batch.decode_sequences == 0) return;
  if (batch.prefill_tokens > 0 && shard.joined_attention) {
    joined_decode_ops(shard, span, batch, ops);
  } else {
    decode_ops(shard, span, batch, ops);
  }
}

}  // namespace

constinit const Mixer kHeads{.layers = layers,
                             .parameters = parameters,
                             .repeated_parameters = repeated_parameters,
                             .cached = cached,
                             .buffer = buffer,
                             .widths = widths,
                             .indivisible = indivisible,
                             .joinable = true,
                             .shares_heads = false,
                             .token_ops = token_ops,
                             .context_ops = context_ops};

// Decodes are prompts of one token to the kernel that reads the step's prompts.
void joined_decode_ops(const ModelShard& shard, const StageSpan& span, const BatchShape& batch,
                       OpList& ops) {
  const auto pairs = [&batch](double keys) {
    return AttentionDecode{
        .sequences = batch.decode_sequences, .queries = batch.decode_queries, .kv_tokens = keys}
        .pairs();
  };
  const double keys = batch.decode_kv_tokens + batch.later_keys();
  AttentionPrefill op{.sequences = batch.decode_sequences,
                      .tokens = double(batch.decode_tokens()),
                      .pairs = pairs(keys),
                      .kv_tokens = keys,
                      .heads = shard.heads,
                      .kv_heads = shard.kv_heads,
                      .key_dim = shard.model->head_dim,
                      .value_dim = shard.model->head_dim,
                      .decodes = true,
                      .overhang = overhang_of(shard, batch, batch.prefill_sequences > 0),
                      .kv = shard.quant.kv,
                      .activations = shard.mixers.activations};
  ops.add(OpName::attention, Family::attn_prefill, double(span.layers.full), op, Grows::context);
  op.window = shard.model->window;
  op.kv_tokens = batch.decode_window_kv_tokens + batch.later_keys();
  op.pairs = pairs(op.kv_tokens);
  op.overhang = 0;  // windows make long contexts alike
  ops.add(OpName::attention_window, Family::attn_prefill, double(span.layers.windowed), op,
          Grows::context);
}

}  // namespace engine

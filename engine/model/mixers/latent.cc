// Latent attention (as DeepSeek-V2/V3): keys and values of all heads are expanded from one narrow latent, which alone is
// cached; decodes attend in the latent space.
#include <utility>

#include "engine/model/mixers/mixer.h"
#include "engine/model/op_builder.h"
#include "engine/model/passes.h"

namespace engine {
namespace {

std::int64_t layers(const ModelSpec& model, const LayerCounts& counts) {
  return model.is_mla() ? counts.attending() : 0;
}

double parameters(const ModelSpec& model) {
  const MlaSpec& mla = model.mla;
  const double hidden = double(model.hidden);
  const double heads = double(model.heads);
  const double head = double(mla.nope_dim + mla.rope_dim);
  const double query =
      mla.q_rank > 0 ? double(mla.q_rank) * (hidden + heads * head) : hidden * heads * head;
  const double latent = hidden * double(mla.kv_rank + mla.rope_dim);
  const double expand = double(mla.kv_rank) * heads * double(mla.nope_dim + mla.value_dim);
  return query + latent + expand + heads * double(mla.value_dim) * hidden;
}

// Weights that make the latents of queries and of keys are whole on every device (as vLLM, SGLang and Megatron have them).
double repeated_parameters(const ModelShard& shard) {
  const MlaSpec& mla = shard.model->mla;
  const double made = double(mla.q_rank + mla.kv_rank + mla.rope_dim);
  return double(shard.model->hidden) * made * (1 - 1 / double(shard.parallel.tp));
}

// A latent is shared by all heads, so every tensor-parallel device keeps a whole copy.
double cached(const ModelShard& shard, double context) {
  const MlaSpec& mla = shard.model->mla;
  return cached_tokens(shard, context) * double(mla.kv_rank + mla.rope_dim) *
         bytes_of(shard.quant.kv);
}

double buffer(const ModelShard& shard) {
  const MlaSpec& mla = shard.model->mla;
  return double(2 * shard.heads + 2 * shard.kv_heads) * double(mla.nope_dim + mla.rope_dim);
}

MixerWidths widths(const ModelShard& shard) {
  const MlaSpec& mla = shard.model->mla;
  const double heads = double(shard.heads);
  const double head = double(mla.nope_dim + mla.rope_dim);
  return {.query = heads * head,
          .keys = heads * (head + double(mla.value_dim)),
          .output = heads * double(mla.value_dim),
          .compressed = double(mla.q_rank + mla.kv_rank),
          .positions = double(mla.rope_dim)};
}

std::optional<Indivisible> indivisible(const ModelSpec& model, std::int64_t ways) {
  if (model.heads % ways != 0) return Indivisible{"heads", model.heads};
  return std::nullopt;
}

void token_ops(const OpBuilder& build, double layers) {
  const ModelShard& shard = build.shard;
  const MlaSpec& mla = build.model.mla;
  const std::int64_t hidden = build.model.hidden;
  const std::int64_t head = mla.nope_dim + mla.rope_dim;
  OpList& ops = build.ops;
  if (mla.q_rank > 0) {
    ops.add(OpName::q_down, Family::gemm, layers, build.gemm(mla.q_rank, hidden));
    ops.add(OpName::q_up, Family::gemm, layers, build.gemm(shard.heads * head, mla.q_rank));
  } else {
    ops.add(OpName::q_up, Family::gemm, layers, build.gemm(shard.heads * head, hidden));
  }
  ops.add(OpName::kv_down, Family::gemm, layers, build.gemm(mla.kv_rank + mla.rope_dim, hidden));
  const double rotated =
      build.model.turned() * build.rows * double((shard.heads + 1) * mla.rope_dim);
  const double latent = build.rows * double(mla.kv_rank + mla.rope_dim);
  Elementwise rope = pass_over(build.rows, rotated + latent, rotated, 3 * rotated);
  rope.cold_bytes = latent * bytes_of(shard.quant.kv);
  ops.add(OpName::rope, Family::rope, layers, rope);
  if (build.batch.decode_sequences > 0) {
    // Decodes attend in the latent space: the key and value expansions move to the query and to
    // the output, one small product a head.
    Gemm absorb = build.gemm(mla.kv_rank, mla.nope_dim);
    absorb.m = build.batch.decode_tokens() + build.batch.padding;
    absorb.batch = shard.heads;
    ops.add(OpName::q_absorb, Family::mla_gen_pre, layers, absorb, Grows::decodes);
    std::swap(absorb.n, absorb.k);
    absorb.n = mla.value_dim;
    ops.add(OpName::v_absorb, Family::mla_gen_post, layers, absorb, Grows::decodes);
  }
  build.quantize(OpName::quantize_attention, layers, double(shard.heads * mla.value_dim));
  ops.add(OpName::attention_out, Family::gemm, layers,
          build.gemm(hidden, shard.heads * mla.value_dim));
}

void prompt_ops(const ModelShard& shard, const StageSpan& span, const BatchShape& batch,
                OpList& ops) {
  const MlaSpec& mla = shard.model->mla;
  const Quantization& quant = shard.mixers;
  // Keys and values of all tokens seen, the cached ones too, are expanded from the latent.
  ops.add(OpName::kv_up, Family::gemm, double(span.layers.attending()),
          Gemm{.m = std::int64_t(batch.prefill_kv_tokens),
               .n = shard.heads * (mla.nope_dim + mla.value_dim),
               .k = mla.kv_rank,
               .batch = 1,
               .weights = quant.weights,
               .activations = quant.activations,
               .group = quant.group},
          Grows::context);
  const AttentionPrefill op{.sequences = batch.prefill_sequences,
                            .tokens = double(batch.prefill_tokens),
                            .pairs = batch.prefill_pairs,
                            .kv_tokens = batch.prefill_kv_tokens,
                            .heads = shard.heads,
                            .kv_heads = shard.heads,
                            .key_dim = mla.nope_dim + mla.rope_dim,
                            .value_dim = mla.value_dim,
                            .latent = mla.kv_rank + mla.rope_dim,
                            .kv = quant.kv,
                            .activations = quant.activations};
  add_prompt_attention(Family::mla_prefill, op, shard, span, batch, ops);
}

void decode_ops(const ModelShard& shard, const StageSpan& span, const BatchShape& batch,
                OpList& ops) {
  const MlaSpec& mla = shard.model->mla;
  AttentionDecode op{.sequences = batch.decode_sequences,
                     .queries = batch.decode_queries,
                     .kv_tokens = batch.decode_kv_tokens + batch.later_keys(),
                     .heads = shard.heads,
                     .kv_heads = 1,
                     .key_dim = mla.kv_rank + mla.rope_dim,
                     .value_dim = mla.kv_rank,
                     .values_in_keys = true,
                     .kv = shard.mixers.kv,
                     .activations = shard.mixers.activations};
  add_decode_attention(Family::mla_decode, op, shard, span, batch, ops);
}

void context_ops(const ModelShard& shard, const StageSpan& span, const BatchShape& batch,
                 OpList& ops) {
  if (batch.prefill_tokens > 0) prompt_ops(shard, span, batch, ops);
  if (batch.decode_sequences > 0) decode_ops(shard, span, batch, ops);
}

}  // namespace

constinit const Mixer kLatent{.layers = layers,
                              .parameters = parameters,
                              .repeated_parameters = repeated_parameters,
                              .cached = cached,
                              .buffer = buffer,
                              .widths = widths,
                              .indivisible = indivisible,
                              .joinable = false,
                              .shares_heads = false,
                              .token_ops = token_ops,
                              .context_ops = context_ops};

}  // namespace engine

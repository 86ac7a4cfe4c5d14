#include "engine/model/model_ops.h"

#include <algorithm>
#include <cmath>

#include "engine/model/adapters.h"
#include "engine/model/passes.h"

namespace engine {
namespace {

bool narrow(Dtype dtype) { return bytes_of(dtype) < kActivationBytes; }

// Builds the ops of one step; a value with the shard, the batch and the list at hand.
struct Builder {
  const ModelShard& shard;
  const ModelSpec& model;
  const BatchShape& batch;
  const LayerCounts& counts;
  OpList& ops;
  double rows;  // tokens, padding included

  Gemm gemm(std::int64_t n, std::int64_t k) const {
    return {.m = std::int64_t(rows),
            .n = n,
            .k = k,
            .batch = 1,
            .weights = shard.dense.weights,
            .activations = shard.dense.activations,
            .group = shard.dense.group};
  }

  void embedding() const {
    ops.add(OpName::embedding, Family::embed, 1, embedding_pass(rows, double(model.hidden)));
  }

  // To the next pipeline stage.
  void stage_transfer(double calls) const {
    ops.add(OpName::stage_transfer, Family::send_recv, calls,
            Collective{
                .pattern = Pattern::send_recv,
                .bytes = rows * double(model.hidden) * kActivationBytes / double(shard.parallel.tp),
                .ranks = 2,
                .stride = shard.parallel.tp});
  }

  void norm(OpName name, double calls) const {
    ops.add(name, Family::norm, calls, norm_pass(rows, double(model.hidden)));
  }

  void quantize(OpName name, double calls, double width) const {
    if (!narrow(shard.dense.activations)) return;
    ops.add(name, Family::quantize, calls,
            Quantize{.rows = rows,
                     .width = width,
                     .format = shard.dense.activations,
                     .group = shard.dense.group});
  }

  void all_reduce(OpName name, double calls) const {
    if (shard.parallel.tp <= 1) return;
    ops.add(name, Family::all_reduce, calls,
            Collective{.pattern = Pattern::all_reduce,
                       .bytes = rows * double(model.hidden) * kActivationBytes,
                       .ranks = shard.parallel.tp,
                       .stride = 1,
                       .library = shard.all_reduce == AllReduce::nccl ? Library::general
                                                                      : Library::fastest});
  }

  void attention_projections() const {
    const double layers = double(counts.all());
    quantize(OpName::quantize_input, 2 * layers, double(model.hidden));
    if (model.is_mla()) {
      latent_projections(layers);
    } else {
      const std::int64_t width = (shard.heads + 2 * shard.kv_heads) * model.head_dim;
      ops.add(OpName::qkv, Family::gemm, layers, gemm(width, model.hidden));
      head_pass(layers);
      quantize(OpName::quantize_attention, layers, double(shard.heads * model.head_dim));
      ops.add(OpName::attention_out, Family::gemm, layers,
              gemm(model.hidden, shard.heads * model.head_dim));
    }
    all_reduce(OpName::attention_reduce, layers);
  }

  // Per-head norms, rotation and the write of new keys and values into the cache.
  void head_pass(double layers) const {
    const double query = rows * double(shard.heads * model.head_dim);
    const double key = rows * double(shard.kv_heads * model.head_dim);
    if (model.qk_norm) {
      ops.add(OpName::qk_norm, Family::norm, layers,
              pass_over(rows, query + key, query + key, 4 * (query + key)));
    }
    Elementwise rope = rope_pass(rows, query, key, bytes_of(shard.quant.kv));
    if (!model.rotary) rope.flops = 0;
    ops.add(OpName::rope, Family::rope, layers, rope);
  }

  void latent_projections(double layers) const {
    const MlaSpec& mla = model.mla;
    const std::int64_t head = mla.nope_dim + mla.rope_dim;
    if (mla.q_rank > 0) {
      ops.add(OpName::q_down, Family::gemm, layers, gemm(mla.q_rank, model.hidden));
      ops.add(OpName::q_up, Family::gemm, layers, gemm(shard.heads * head, mla.q_rank));
    } else {
      ops.add(OpName::q_up, Family::gemm, layers, gemm(shard.heads * head, model.hidden));
    }
    ops.add(OpName::kv_down, Family::gemm, layers, gemm(mla.kv_rank + mla.rope_dim, model.hidden));
    const double rotated = rows * double((shard.heads + 1) * mla.rope_dim);
    const double latent = rows * double(mla.kv_rank + mla.rope_dim);
    Elementwise rope = pass_over(rows, rotated + latent, rotated, 3 * rotated);
    rope.cold_bytes = latent * bytes_of(shard.quant.kv);
    ops.add(OpName::rope, Family::rope, layers, rope);
    if (batch.decode_sequences > 0) {
      // Decodes attend in the latent space: the key and value expansions move to the query and to
      // the output, one small product a head.
      const std::int64_t decodes = batch.decode_tokens() + batch.padding;
      Gemm absorb = gemm(mla.kv_rank, mla.nope_dim);
      absorb.m = decodes;
      absorb.batch = shard.heads;
      ops.add(OpName::q_absorb, Family::mla_gen_pre, layers, absorb, Grows::decodes);
      std::swap(absorb.n, absorb.k);
      absorb.n = mla.value_dim;
      ops.add(OpName::v_absorb, Family::mla_gen_post, layers, absorb, Grows::decodes);
    }
    quantize(OpName::quantize_attention, layers, double(shard.heads * mla.value_dim));
    ops.add(OpName::attention_out, Family::gemm, layers,
            gemm(model.hidden, shard.heads * mla.value_dim));
  }

  void mlp(double calls, std::int64_t width, OpName up, OpName activation, OpName down) const {
    const bool gated = model.mlp == MlpKind::gated;
    ops.add(up, Family::gemm, calls, gemm(gated ? 2 * width : width, model.hidden));
    ops.add(activation, Family::act, calls, activation_pass(rows, double(width), gated));
    if (up != OpName::shared_gate_up) quantize(OpName::quantize_mlp, calls, double(width));
    ops.add(down, Family::gemm, calls, gemm(model.hidden, width));
  }

  void mixture() const {
    const MoeSpec& moe = model.moe;
    const double layers = double(counts.mixture);
    Gemm router = gemm(moe.experts, model.hidden);
    router.weights = router.activations = Dtype::bf16;
    ops.add(OpName::router, Family::gemm, layers, router);
    if (shard.shared_intermediate > 0) {
      mlp(layers, shard.shared_intermediate, OpName::shared_gate_up, OpName::shared_activation,
          OpName::shared_down);
    }

    // Tokens of every replica that shares these experts meet here.
    const bool exchange = shard.expert_replicas > 1;
    // Dispatch sends matrix inputs, which may be narrower; combine returns 16 bits.
    ExpertExchange travel{.way = ExpertExchange::Way::dispatch,
                          // Devices that share a layer's attention share the sending, too.
                          .tokens = rows / double(shard.parallel.tp),
                          .hidden = model.hidden,
                          .top_k = moe.top_k,
                          .experts = shard.experts.placed,
                          .groups = moe.groups,
                          .top_groups = moe.top_groups,
                          .ranks = shard.parallel.ep,
                          .value_bytes = bytes_of(shard.quant.activations)};
    // The kernels for many tokens ask the host how much arrives, which a captured step cannot.
    if (batch.prefill_tokens == 0) travel.kernels = ExpertExchange::Kernels::low_latency;
    if (exchange) {
      ops.add(OpName::expert_dispatch, Family::all_to_all, layers, travel, Grows::exchanged);
    }
    ops.add(OpName::experts, Family::moe, layers,
            Moe{.tokens = rows * double(shard.expert_replicas),
                .hidden = model.hidden,
                .intermediate = shard.expert_intermediate,
                .top_k = moe.top_k,
                .experts = shard.experts.placed,
                .redundant = shard.experts.redundant,
                .local_experts = shard.experts.local,
                .exchanged = exchange,
                .gated = model.mlp == MlpKind::gated,
                .balanced = false,
                .skew = moe.skew,
                .weights = shard.quant.weights,
                .activations = shard.quant.activations,
                .group = shard.quant.group});
    if (exchange) {
      travel.way = ExpertExchange::Way::combine;
      travel.value_bytes = kActivationBytes;
      ops.add(OpName::expert_combine, Family::all_to_all, layers, travel, Grows::exchanged);
    }
  }

  void head() const {
    const double sampled = double(batch.sampled);
    if (batch.sampled == 0) return;
    Gemm logits = gemm(shard.vocabulary, model.hidden);
    logits.m = batch.sampled;
    // Output projections are left in 16 bits by every common quantisation recipe.
    logits.weights = logits.activations = Dtype::bf16;
    ops.add(OpName::logits, Family::gemm, 1, logits, Grows::sampled);
    if (shard.parallel.tp > 1) {
      ops.add(OpName::logits_gather, Family::all_gather, 1,
              Collective{Pattern::all_gather, sampled * double(model.vocabulary) * kActivationBytes,
                         shard.parallel.tp, 1},
              Grows::sampled);
    }
    const Elementwise sampling = sampling_pass(sampled, double(model.vocabulary));
    ops.add(OpName::sampling, Family::sample, 1, sampling, Grows::sampled);
    if (shard.sampling == Sampling::sorted) {
      // Sort, order, probabilities, running sums, masks, scatter. On an H200 (PyTorch 2.11, 16 to 127
      // rows, vocabularies of 32,000 to 201,088) all of it takes as long as 24 passes that move 21
      // bytes a logit at peak bandwidth.
      Elementwise sort = sampling;
      sort.resident_bytes = 0;
      sort.cold_bytes = 21 * sampled * double(model.vocabulary);
      // Plain passes: the family of sampling is fitted to argmax, one thread block a row.
      ops.add(OpName::sampling, Family::residual, 24, sort, Grows::sampled);
    }
  }
};

double overhang_of(const ModelShard& shard, const BatchShape& batch, bool beside_prompts) {
  return shard.even_parts ? decode_overhang(batch, beside_prompts) : 0;
}

void layer_ops(const Builder& build) {
  const LayerCounts& counts = build.counts;
  const ModelSpec& model = build.model;
  const double layers = double(counts.all());
  const double after_attention = layers * double(model.norms_per_layer / 2);
  build.norm(OpName::input_norm, layers * double(model.norms_per_layer) - after_attention);
  build.attention_projections();
  build.norm(OpName::mlp_norm, after_attention);
  if (counts.dense > 0) {
    const bool gated = model.mlp == MlpKind::gated;
    build.mlp(double(counts.dense), build.shard.intermediate, gated ? OpName::gate_up : OpName::up,
              OpName::activation, OpName::down);
  }
  if (counts.mixture > 0) build.mixture();
  build.all_reduce(OpName::mlp_reduce, layers);
}

// Layers once for each half of the tokens: the exchange of one runs beside what the other computes. Latent attention's
// small products and attention itself are not split, and nothing hides behind them.
void halves_ops(const Builder& build) {
  OpList half;
  const double rows = std::max(1.0, std::ceil(build.rows / 2));
  layer_ops({build.shard, build.model, build.batch, build.counts, half, rows});
  for (PlannedOp op : half) {
    if (op.grows == Grows::tokens || op.grows == Grows::exchanged) {
      op.calls *= 2;
      op.beside = {.group = 1, .stream = std::uint8_t(op.grows == Grows::exchanged ? 1 : 0)};
    }
    build.ops.add(op);
  }
}

// Adapters of a batch, beside the products of the list.
void add_adapters(const ModelShard& shard, const BatchShape& batch, OpList& ops) {
  const std::size_t count = ops.size();
  for (std::size_t i = 0; i < count; ++i) {
    const PlannedOp product = ops.begin()[i];
    add_adapter(product, shard.lora_targets, shard.lora_rank, double(batch.adapters), ops);
  }
}

}  // namespace

void token_ops(const ModelShard& shard, const StageSpan& span, const BatchShape& batch,
               OpList& ops) {
  const double rows = double(batch.tokens() + batch.padding);
  const Builder build{shard, *shard.model, batch, span.layers, ops, rows};
  if (span.first) build.embedding();
  if (shard.two_halves && span.layers.mixture > 0) {
    halves_ops(build);
  } else {
    layer_ops(build);
  }
  if (span.last) {
    build.norm(OpName::final_norm, 1);
    build.head();
  } else {
    build.stage_transfer(1);
  }
  if (batch.adapters > 0) add_adapters(shard, batch, ops);
}

void token_ops(const ModelShard& shard, const BatchShape& batch, OpList& ops) {
  token_ops(shard, {.layers = shard.layers}, batch, ops);
  const double rows = double(batch.tokens() + batch.padding);
  const Builder build{shard, *shard.model, batch, shard.layers, ops, rows};
  build.stage_transfer(double(shard.parallel.pp - 1));
}

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
                      .activations = shard.dense.activations};
  ops.add(OpName::attention, Family::attn_prefill, double(span.layers.full), op, Grows::context);
  op.window = shard.model->window;
  op.kv_tokens = batch.decode_window_kv_tokens + batch.later_keys();
  op.pairs = pairs(op.kv_tokens);
  op.overhang = 0;  // windows make long contexts alike
  ops.add(OpName::attention_window, Family::attn_prefill, double(span.layers.windowed), op,
          Grows::context);
}

void attention_ops(const ModelShard& shard, const StageSpan& span, const BatchShape& batch,
                   OpList& ops) {
  const ModelSpec& model = *shard.model;
  const Quantization& quant = shard.dense;
  if (batch.prefill_tokens > 0) {
    AttentionPrefill op{.sequences = batch.prefill_sequences,
                        .tokens = double(batch.prefill_tokens),
                        .pairs = batch.prefill_pairs,
                        .kv_tokens = batch.prefill_kv_tokens,
                        .heads = shard.heads,
                        .kv_heads = shard.kv_heads,
                        .key_dim = model.head_dim,
                        .value_dim = model.head_dim,
                        .kv = quant.kv,
                        .activations = quant.activations};
    if (model.is_mla()) {
      op.kv_heads = shard.heads;
      op.key_dim = model.mla.nope_dim + model.mla.rope_dim;
      op.latent = model.mla.kv_rank + model.mla.rope_dim;
      op.value_dim = model.mla.value_dim;
      // Keys and values of all tokens seen, the cached ones too, are expanded from the latent.
      ops.add(OpName::kv_up, Family::gemm, double(span.layers.all()),
              Gemm{.m = std::int64_t(batch.prefill_kv_tokens),
                   .n = shard.heads * (model.mla.nope_dim + model.mla.value_dim),
                   .k = model.mla.kv_rank,
                   .batch = 1,
                   .weights = quant.weights,
                   .activations = quant.activations,
                   .group = quant.group},
              Grows::context);
    }
    const Family family = model.is_mla() ? Family::mla_prefill : Family::attn_prefill;
    ops.add(OpName::attention, family, double(span.layers.full), op, Grows::context);
    op.window = model.window;
    op.pairs = batch.prefill_window_pairs;
    op.kv_tokens = batch.prefill_window_kv_tokens;
    ops.add(OpName::attention_window, family, double(span.layers.windowed), op, Grows::context);
  }
  if (batch.decode_sequences > 0 && batch.prefill_tokens > 0 && shard.joined_attention) {
    joined_decode_ops(shard, span, batch, ops);
  } else if (batch.decode_sequences > 0) {
    AttentionDecode op{.sequences = batch.decode_sequences,
                       .queries = batch.decode_queries,
                       .kv_tokens = batch.decode_kv_tokens + batch.later_keys(),
                       .overhang = overhang_of(shard, batch, false),
                       .heads = shard.heads,
                       .kv_heads = shard.kv_heads,
                       .key_dim = model.head_dim,
                       .value_dim = model.head_dim,
                       .values_in_keys = false,
                       .kv = quant.kv,
                       .activations = quant.activations};
    if (model.is_mla()) {
      op.kv_heads = 1;
      op.key_dim = model.mla.kv_rank + model.mla.rope_dim;
      op.value_dim = model.mla.kv_rank;
      op.values_in_keys = true;
    }
    const Family family = model.is_mla() ? Family::mla_decode : Family::attn_decode;
    ops.add(OpName::attention, family, double(span.layers.full), op, Grows::context);
    op.window = model.window;
    op.kv_tokens = batch.decode_window_kv_tokens + batch.later_keys();
    op.overhang = 0;
    ops.add(OpName::attention_window, family, double(span.layers.windowed), op, Grows::context);
  }
}

void attention_ops(const ModelShard& shard, const BatchShape& batch, OpList& ops) {
  attention_ops(shard, {.layers = shard.layers}, batch, ops);
}

}  // namespace engine

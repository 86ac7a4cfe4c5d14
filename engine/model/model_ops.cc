#include "engine/model/model_ops.h"

#include <algorithm>
#include <cmath>

#include "engine/model/adapters.h"
#include "engine/model/context_ops.h"
#include "engine/model/mixers/mixer.h"
#include "engine/model/op_builder.h"
#include "engine/model/passes.h"

namespace engine {
namespace {

// Blocks of DeepSeek's fp8, and what is multiplied in 16 bits anyway. Groups as small as matrix units take them (NVFP4, MXFP8) and
// scales for a whole token are no such blocks.
bool in_blocks(const Quantization& quant) {
  const Dtype format = quant.activations;
  const bool small = format == Dtype::fp4 || (format == Dtype::fp8 && quant.group <= 32);
  return quant.group <= kLargestBlock && !small;
}

// A value on its way to all devices. TensorRT-LLM and vLLM make inputs narrow before, with their scales, but for blocks, which are
// made where they arrive.
double gathered_bytes(const Quantization& quant) {
  if (is_wide(quant.activations)) return bytes_of(quant.activations);
  if (in_blocks(quant)) return kActivationBytes;
  const double scale =
      quant.group <= kLargestBlock ? scale_bytes(quant.activations, quant.group) : 0;
  return bytes_of(quant.activations) + scale;
}

// A value on its way to its expert.
double sent_bytes(const ModelShard& shard) {
  const bool narrow = !is_wide(shard.quant.activations);
  const bool made_there = narrow && !shard.narrow_exchange && in_blocks(shard.quant);
  return made_there ? kActivationBytes : bytes_of(shard.quant.activations);
}

double sent_value(const ModelShard& shard) {
  return shard.expert_travel == ExpertTravel::gathered ? gathered_bytes(shard.quant)
                                                       : sent_bytes(shard);
}

// What every model has around its mixers: embedding, norms, MLPs, experts, logits.
struct Builder : OpBuilder {
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
                .stride = shard.parallel.tp * shard.shared_prompts.devices});
  }

  // Layers whose MLP gets narrow inputs. Experts that make their own need none, unless shared experts do or the inputs travel narrow.
  std::int64_t narrow_mlps() const {
    const bool exchange = shard.expert_replicas > 1;
    const bool travel_narrow = exchange && sent_value(shard) < kActivationBytes;
    const bool own = shard.experts_quantize && shard.shared_intermediate == 0 && !travel_narrow;
    return own ? counts.dense : counts.mlps();
  }

  // Norms that sums of partial results do on their way: before the experts of a layer, and of what comes out of them. Stages of a
  // pipeline send what comes out of their last layer, and leave its norm to the next one.
  double normed_sums() const {
    const double bytes = rows * double(model.hidden) * kActivationBytes;
    const std::int64_t devices = shard.parallel.tp;
    const bool normed = shard.normed_sums && devices > 1 && shard.expert_replicas == 1 &&
                        bytes <= largest_one_shot(devices);
    return normed ? double(counts.mixture) : 0;
  }

  void mixers() const {
    const double layers = double(counts.all());
    const OpBuilder parts{shard, model, batch, counts, ops, rows, shard.mixers};
    // Inputs of the mixer and of the MLP.
    const bool alike = shard.mixers == shard.dense;
    if (!alike) parts.quantize(OpName::quantize_input, layers, double(model.hidden));
    quantize(OpName::quantize_input, (alike ? layers : 0) + double(narrow_mlps()),
             double(model.hidden));
    for (const Mixer* mixer : kMixers) {
      if (const std::int64_t own = mixer->layers(model, counts)) {
        mixer->token_ops(parts, double(own));
      }
    }
    all_reduce(OpName::attention_reduce, layers);
  }

  // Of each image once, whatever the number of its tokens; norms apply it as they pass.
  void modulation() const {
    const std::int64_t width = model.modulation * model.hidden / shard.parallel.tp;
    Gemm vectors = gemm(std::max<std::int64_t>(1, width), model.hidden);
    vectors.m = batch.prefill_sequences + batch.decode_sequences;
    const double layers = double(counts.all());
    ops.add(OpName::modulation, Family::gemm, layers, vectors);
    if (shard.parallel.tp == 1) return;
    const double bytes = double(vectors.m * model.modulation * model.hidden) * kActivationBytes;
    ops.add(OpName::modulation, Family::all_gather, layers,
            Collective{.pattern = Pattern::all_gather, .bytes = bytes, .ranks = shard.parallel.tp});
  }

  void mlp(double calls, std::int64_t width, OpName up, OpName activation, OpName down) const {
    const bool gated = model.mlp == MlpKind::gated;
    ops.add(up, Family::gemm, calls, gemm(gated ? 2 * width : width, model.hidden));
    Elementwise pass = activation_pass(rows, double(width), gated);
    const bool narrow = comes_narrow(NarrowOutputs::activations);
    if (narrow) {
      pass.resident_bytes -=
          rows * double(width) * (kActivationBytes - bytes_of(formats.activations));
    }
    ops.add(activation, Family::act, calls, pass);
    if (up != OpName::shared_gate_up && !narrow) {
      quantize(OpName::quantize_mlp, calls, double(width));
    }
    ops.add(down, Family::gemm, calls, gemm(model.hidden, width));
  }

  // One number for each token, in the format of routers, and what experts gave times it.
  void shared_gate(double layers) const {
    Gemm gate = gemm(1, model.hidden);
    gate.weights = gate.activations = unquantized(formats.activations);
    ops.add(OpName::shared_gate, Family::gemm, layers, gate);
    const double values = rows * double(model.hidden);
    ops.add(OpName::shared_gate, Family::residual, layers, pass_over(rows, values, values, values));
  }

  void shared_experts(double layers) const {
    const std::size_t first = ops.size();
    mlp(layers, shard.shared_intermediate, OpName::shared_gate_up, OpName::shared_activation,
        OpName::shared_down);
    if (model.moe.shared_gate) shared_gate(layers);
    // Halves of a step hide exchanges behind them instead.
    const bool beside = shard.shared_experts == SharedExperts::beside && !shard.two_halves;
    if (beside && rows < kTokensBeside) ops.hide_floors(first);
  }

  // Of every replica that shares them, in all rows or in one half of them.
  double tokens_at_experts() const {
    if (batch.expert_tokens == 0) return rows * double(shard.expert_replicas);
    return double(batch.expert_tokens) * rows / double(batch.tokens() + batch.padding);
  }

  ExpertExchange::Kernels exchange_kernels() const {
    using Kernels = ExpertExchange::Kernels;
    switch (shard.expert_travel) {
      case ExpertTravel::low_latency:
        return Kernels::low_latency;
      case ExpertTravel::normal:
        return Kernels::normal;
      case ExpertTravel::gathered:
        return Kernels::gathered;
      case ExpertTravel::automatic:
      case ExpertTravel::switched:  // decided by now (choose_kernels)
        break;
    }
    return Kernels::fastest;
  }

  void mixture() const {
    const MoeSpec& moe = model.moe;
    const double layers = double(counts.mixture);
    Gemm router = gemm(moe.experts, model.hidden);
    router.weights = router.activations = unquantized(formats.activations);
    ops.add(OpName::router, Family::gemm, layers, router);
    if (shard.shared_intermediate > 0) shared_experts(layers);

    // Tokens of every replica that shares these experts meet here.
    const bool exchange = shard.expert_replicas > 1;
    const bool gathered = exchange && shard.expert_travel == ExpertTravel::gathered;
    ExpertExchange travel{
        .way = ExpertExchange::Way::dispatch,
        // Devices that share a layer's attention share the sending, too.
        .tokens = tokens_at_experts() / double(shard.parallel.ep),
        .hidden = model.hidden,
        .top_k = moe.top_k,
        .experts = shard.experts.placed,
        .redundant = shard.experts.redundant,
        .skew = moe.skew,
        .drift = moe.drift,
        .groups = moe.groups,
        .top_groups = moe.top_groups,
        .ranks = shard.parallel.ep,
        // Dispatch sends matrix inputs, which may be narrower; combine returns unquantised values.
        .value_bytes = sent_value(shard),
        .kernels = exchange_kernels()};
    if (exchange) {
      ops.add(OpName::expert_dispatch, gathered ? Family::all_gather : Family::all_to_all, layers,
              travel, Grows::exchanged);
    }
    ops.add(OpName::experts, Family::moe, layers,
            Moe{.tokens = tokens_at_experts(),
                .hidden = model.hidden,
                .intermediate = shard.expert_intermediate,
                .top_k = moe.top_k,
                .experts = shard.experts.placed,
                .redundant = shard.experts.redundant,
                .local_experts = shard.experts.local,
                .exchanged = exchange && !gathered,
                .gated = model.mlp == MlpKind::gated,
                .balanced = false,
                .skew = moe.skew,
                .drift = moe.drift,
                .weights = shard.quant.weights,
                .activations = shard.quant.activations,
                .group = shard.quant.group,
                .kernels = shard.four_bit_experts});
    if (exchange) {
      travel.way = ExpertExchange::Way::combine;
      travel.value_bytes = bytes_of(unquantized(formats.activations));
      ops.add(OpName::expert_combine, gathered ? Family::reduce_scatter : Family::all_to_all,
              layers, travel, Grows::exchanged);
    }
  }

  void head() const {
    const double sampled = double(batch.sampled);
    if (batch.sampled == 0) return;
    Gemm logits = gemm(shard.vocabulary, model.hidden);
    logits.m = batch.sampled;
    // Output projections are quantised by no common recipe.
    logits.weights = logits.activations = unquantized(formats.activations);
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

void layer_ops(const Builder& build) {
  const LayerCounts& counts = build.counts;
  const ModelSpec& model = build.model;
  if (model.modulation > 0) build.modulation();
  const double normed = build.normed_sums();
  const double normed_after = build.shard.parallel.pp > 1 ? 0 : normed;
  build.norm(OpName::input_norm, double(counts.all() * model.mixer_norms()) - normed_after);
  build.mixers();
  build.norm(OpName::mlp_norm, double(counts.mlps() * model.mlp_norms()) - normed);
  // An MLP of no width is none: layers that are a mixer alone.
  const std::int64_t dense = build.shard.intermediate > 0 ? counts.dense : 0;
  if (dense > 0) {
    const bool gated = model.mlp == MlpKind::gated;
    build.mlp(double(dense), build.shard.intermediate, gated ? OpName::gate_up : OpName::up,
              OpName::activation, OpName::down);
  }
  if (counts.mixture > 0) build.mixture();
  build.all_reduce(OpName::mlp_reduce, double(dense + counts.mixture));
}

// Layers once for each half of the tokens: the exchange of one runs beside what the other computes. Latent attention's
// small products and attention itself are not split, and nothing hides behind them.
void halves_ops(const Builder& build) {
  OpList half;
  const double rows = std::max(1.0, std::ceil(build.rows / 2));
  layer_ops({{build.shard, build.model, build.batch, build.counts, half, rows, build.formats}});
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

// Passes and sums are counted in 16 bits; keys and values on their way to the cache in its format.
void widen(const Quantization& quant, std::span<PlannedOp> ops) {
  constexpr double wider = 4 / kActivationBytes;
  for (PlannedOp& op : ops) {
    if (auto* pass = std::get_if<Elementwise>(&op.op)) {
      const bool cached = op.name == OpName::rope && is_wide(quant.kv);
      pass->resident_bytes *= wider;
      pass->cold_bytes *= cached ? 1 : wider;
    } else if (auto* sum = std::get_if<Collective>(&op.op)) {
      sum->bytes *= wider;
    }
  }
}

// What one device does with its tokens.
void own_token_ops(const ModelShard& shard, const StageSpan& span, const BatchShape& batch,
                   OpList& ops) {
  const std::size_t already = ops.size();
  const double rows = double(batch.tokens() + batch.padding);
  const Builder build{{shard, *shard.model, batch, span.layers, ops, rows, shard.dense}};
  if (span.first) build.embedding();
  // One token has no two halves.
  if (shard.two_halves && span.layers.mixture > 0 && rows >= 2) {
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
  if (is_wide(shard.quant.activations)) widen(shard.quant, ops.from(already));
}

bool reads_together(const ModelShard& shard, const BatchShape& batch) {
  return shard.shared_prompts.devices > 1 && batch.prefill_tokens > 0;
}

// Attention to prompts that several devices read together, and scans of them, as one device does it.
void shared_attention_ops(const ModelShard& shard, const StageSpan& span, const BatchShape& batch,
                          OpList& ops) {
  OpList own;
  for (const Mixer* mixer : kMixers) {
    if (mixer->layers(*shard.model, span.layers) == 0) continue;
    mixer->context_ops(shard, span, share_of(batch, shard.shared_prompts), own);
  }
  for (const PlannedOp& op : own) {
    if (std::holds_alternative<AttentionPrefill>(op.op)) {
      add_shared_attention(op, shard.shared_prompts, ops);
    } else if (std::holds_alternative<Scan>(op.op)) {
      add_shared_scan(op, shard.shared_prompts, ops);
    } else {
      ops.add(op);
    }
  }
}

}  // namespace

void token_ops(const ModelShard& shard, const StageSpan& span, const BatchShape& batch,
               OpList& ops) {
  if (reads_together(shard, batch)) {
    own_token_ops(shard, span, share_of(batch, shard.shared_prompts), ops);
  } else {
    own_token_ops(shard, span, batch, ops);
  }
}

void token_ops(const ModelShard& shard, const BatchShape& batch, OpList& ops) {
  token_ops(shard, {.layers = shard.layers}, batch, ops);
  const bool together = reads_together(shard, batch);
  const double tokens =
      double(together ? share_of(batch, shard.shared_prompts).tokens() : batch.tokens());
  const Builder build{
      {shard, *shard.model, batch, shard.layers, ops, tokens + double(batch.padding), shard.dense}};
  const std::size_t already = ops.size();
  build.stage_transfer(double(shard.parallel.pp - 1));
  if (is_wide(shard.quant.activations)) widen(shard.quant, ops.from(already));
}

void attention_ops(const ModelShard& shard, const StageSpan& span, const BatchShape& batch,
                   OpList& ops) {
  if (reads_together(shard, batch)) return shared_attention_ops(shard, span, batch, ops);
  for (const Mixer* mixer : kMixers) {
    if (mixer->layers(*shard.model, span.layers) > 0) mixer->context_ops(shard, span, batch, ops);
  }
}

void attention_ops(const ModelShard& shard, const BatchShape& batch, OpList& ops) {
  attention_ops(shard, {.layers = shard.layers}, batch, ops);
}

}  // namespace engine

#include "engine/training/passes/kept_activations.h"

#include <algorithm>
#include <cmath>

#include "engine/model/context_ops.h"
#include "engine/model/expert_places.h"
#include "engine/model/mixers/mixer.h"
#include "engine/training/passes/adapters.h"
#include "engine/training/passes/chunk_states.h"

namespace engine {
namespace {

// Of a value in fp8.
constexpr double kNarrowInput = 1;

// What one token leaves on one device in one layer, in bytes. The lists follow what autograd keeps: inputs of norms, of
// products, of attention and of activations.
//
// Training libraries with narrow formats keep the inputs of products as they multiplied them (Transformer Engine saves the
// cast and transposed tensor, not the 16-bit one); inputs of norms, activations and attention stay in 16 bits, and
// attention's output is kept once for attention and once, narrow, for the product that follows. One kernel for a gated
// activation (Megatron's fused SwiGLU) keeps its two inputs and its output; plain PyTorch keeps the activated half, too.
class LayerBytes {
 public:
  LayerBytes(const ModelShard& shard, const TrainSettings& train)
      : shard_(shard),
        model_(*shard.model),
        train_(train),
        again_(parts_of(train.recompute)),
        widths_(mean_widths(shard)),
        split_(train.sequence_parallel ? double(shard.parallel.tp) : 1),
        value_(value_bytes(shard)) {}

  double stream() const { return double(model_.hidden) / split_ * value_; }

  // Every norm keeps its input; what no norm precedes keeps the stream once.
  double of_mixer() const {
    const double norms = double(model_.mixer_norms());
    return (std::max(1.0, norms) - inputs_spared(norms, OpName::qkv)) * stream() + attention();
  }
  double of_mlp(bool mixture) const {
    return of_mlp_norms() + (mixture ? experts() : mlp(double(shard_.intermediate)));
  }
  // All that is left of an MLP that is computed again.
  double of_mlp_norms() const {
    const double norms = double(model_.mlp_norms());
    return (norms - inputs_spared(norms, OpName::gate_up)) * stream();
  }
  // What a dense MLP makes again for its own backward pass.
  double of_gates() const { return activation_inputs(double(shard_.intermediate)); }
  // A 32-bit number per head, which attention that is computed again does without.
  double statistics() const { return 4 * double(shard_.heads); }

  double key_bytes() const { return widths_.keys * value_; }

 private:
  // The input of a product: nothing where its weights are frozen and no adapter stands beside it.
  double product_input(double values, OpName product, Dtype format) const {
    if (train_.has_adapters() && !has_adapter(product, train_.lora_targets)) return 0;
    return values * std::min(value_, bytes_of(format));
  }
  double dense_input(double values, OpName product) const {
    return product_input(values, product, shard_.dense.activations);
  }
  // What norms and activations give, unless they are done again.
  double made_input(double values, OpName product, Dtype format) const {
    if (again_.activations) return 0;
    return product_input(values, product, format);
  }
  double normed_input(OpName product) const {
    return made_input(double(model_.hidden) / split_, product, shard_.dense.activations);
  }
  // Of these norms one comes before a product. It may start its backward pass from what the product keeps, if that is as it gave it.
  double inputs_spared(double norms, OpName product) const {
    const bool as_given = bytes_of(shard_.dense.activations) >= value_ && normed_input(product) > 0;
    return train_.norms_from_outputs && norms > 0 && as_given ? 1 : 0;
  }

  double attention() const {
    double kept = normed_input(OpName::qkv) + statistics();
    kept += widths_.positions * value_;
    if (!again_.latents) kept += (widths_.query + widths_.keys) * value_;
    // Attention keeps what it gave, unless it is done again; the product that follows keeps it as it multiplies it. In 16 bits
    // that is the same.
    if (!again_.attention) kept += widths_.output * value_;
    const bool made_again = again_.attention && again_.gates;
    if (!made_again && (again_.attention || bytes_of(shard_.dense.activations) < value_)) {
      kept += dense_input(widths_.output, OpName::attention_out);
    }
    kept += dense_input(widths_.compressed / split_, OpName::q_up);  // each device's own part
    // Norms of heads keep queries and keys as they were before them; those of an average layer.
    if (model_.qk_norm) {
      const double attending = double(shard_.layers.attending()) / double(shard_.layers.all());
      const auto heads = double((shard_.heads + shard_.kv_heads) * model_.head_dim);
      kept += attending * heads * value_;
    }
    if (!train_.fused) kept += widths_.unfused * value_;
    return kept;
  }

  // Plain PyTorch keeps the activated half besides the two inputs.
  double activation_inputs(double width) const {
    const bool gated = model_.mlp == MlpKind::gated;
    const double each = train_.narrow_activation_inputs ? kNarrowInput : value_;
    return width * ((gated ? 2 : 1) * each + (gated && !train_.fused ? value_ : 0));
  }
  double activated(double width, OpName product, Dtype format) const {
    return activation_inputs(width) + made_input(width, product, format);
  }

  // An MLP beside attention has its input.
  double mlp_input(OpName product) const {
    return model_.mlp_norms() > 0 ? normed_input(product) : 0;
  }
  double mlp(double width) const {
    if (again_.gates) return mlp_input(OpName::gate_up);
    return mlp_input(OpName::gate_up) + activated(width, OpName::down, shard_.dense.activations);
  }

  // Copies of tokens that meet on the fullest device, for each token of a device. Routers that favour some experts fill it in
  // proportion to the exponent of their power law.
  double copies() const {
    const Moe meeting{
        .tokens = tokens_of_a_pass(train_, shard_.parallel) * double(shard_.expert_replicas),
        .top_k = model_.moe.top_k,
        .experts = shard_.experts.placed,
        .redundant = shard_.experts.redundant,
        .local_experts = shard_.experts.local};
    const double mean = double(model_.moe.top_k) * double(shard_.experts.local) /
                        double(shard_.experts.placed) * double(shard_.expert_replicas);
    return mean * fullest_device(meeting, train_.routing_skew);
  }

  double experts() const {
    const double hidden = double(model_.hidden);
    const double dispatched = product_input(hidden, OpName::experts, shard_.quant.activations);
    // Rows are weighed in the activation, whose inputs are kept anyway, or once they are back, which keeps them.
    const double returned = train_.fused_experts ? 0 : hidden * value_;
    double kept = copies() * (dispatched + returned +
                              activated(double(shard_.expert_intermediate), OpName::experts,
                                        shard_.quant.activations));
    kept += mlp_input(OpName::shared_gate_up);
    if (shard_.shared_intermediate > 0) {
      kept += activated(double(shard_.shared_intermediate), OpName::shared_down,
                        shard_.dense.activations);
    }
    return kept;
  }

  const ModelShard& shard_;
  const ModelSpec& model_;
  const TrainSettings& train_;
  RecomputedParts again_;
  MixerWidths widths_;
  double split_;  // devices that the residual stream is split over
  double value_;  // bytes
};

// Weights of the widest matrix of layers whose new gradients are whole; experts that one kernel multiplies are one matrix. Replicas
// that share gradients out have those of a whole layer there, which is counted with what they gather.
double widest_whole_matrix(const ModelShard& shard, const LayerCounts& layers,
                           const TrainSettings& train) {
  const StateSharing sharers = train.zero < 2 ? StateSharing{} : sharers_of(shard.parallel, train);
  const bool dense_whole = layers.dense > 0 && sharers.dense == 1;
  const bool experts_whole = layers.mixture > 0 && sharers.experts == 1;
  const WidestMatrix widest = widest_matrix(shard, train);
  return std::max(dense_whole ? widest.dense : 0, experts_whole ? widest.experts : 0);
}

}  // namespace

WidestMatrix widest_matrix(const ModelShard& shard, const TrainSettings& train) {
  const ModelSpec& model = *shard.model;
  const double up = double(model.hidden) * (model.mlp == MlpKind::gated ? 2 : 1);
  const bool one_kernel = train.expert_products == ExpertProducts::grouped;
  const double experts = one_kernel ? double(shard.experts.local) : 1;
  return {up * double(shard.intermediate), up * double(shard.expert_intermediate) * experts};
}

KeptActivations kept_activations(const ModelShard& shard, const LayerChunk& chunk,
                                 const TrainSettings& train) {
  const double tokens = tokens_of_a_pass(train, shard.parallel);
  const LayerCounts& layers = chunk.trained.layers;
  const LayerBytes bytes(shard, train);
  const double mixer = tokens * bytes.of_mixer();
  const double dense = layers.dense > 0 ? tokens * bytes.of_mlp(false) : 0;
  const double mixture = layers.mixture > 0 ? tokens * bytes.of_mlp(true) : 0;
  const RecomputedParts again = parts_of(train.recompute);
  const double spared = again.attention ? bytes.statistics() : 0;
  const double of_mixture = again.experts ? tokens * bytes.of_mlp_norms() : mixture;
  const double all = double(layers.all());
  KeptActivations activations;
  activations.kept = all * (mixer - tokens * spared) + double(layers.dense) * dense +
                     double(layers.mixture) * of_mixture;
  if (again.experts) activations.at_work = mixture;
  if (again.gates && layers.dense > 0) activations.at_work = tokens * bytes.of_gates();
  if (train.recompute == Recompute::full && all > 0) {
    // Layers that are not computed again keep what they would without.
    const double first = layers_of(train.recompute_first, all);
    const double together = std::min(double(train.recompute_layers), first);
    activations.kept *= 1 - first / all;
    activations.kept += std::ceil(first / together) * tokens * bytes.stream();
    activations.at_work = together * (mixer + std::max(dense, mixture));
  }
  if (train.offload_activations && all > 0) {
    // A layer's leave while the next one's are made, and come back while those of the layer after it are used.
    const double leave = layers_of(train.offload_layers, all);
    activations.offloaded = leave / all * activations.kept;
    activations.kept -= activations.offloaded;
    activations.in_flight = std::min(1.0, 2 / leave) * activations.offloaded;
  }
  // The output of a graph has a place of its own, from which the next one's input is copied; there it stays.
  if (train.cuda_graphs) activations.kept += double(layers.all()) * tokens * bytes.stream();
  if (chunk.span.last) {
    // In 16 and 32 bits, or these and their gradients in both; or in 32 bits throughout.
    const double formats = trains_wide(shard) ? 4 : 2 + 4;
    activations.logits = (train.fused_loss ? 1 : 2) * formats * tokens * double(shard.vocabulary);
  }
  if (!train.fused_gradients && !train.has_adapters()) {
    activations.new_gradient = value_bytes(shard) * widest_whole_matrix(shard, layers, train);
  }
  if (layers.all() > 0) {
    activations.context =
        2 * tokens * bytes.key_bytes() *
        foreign_context({.exchange = train.context, .devices = shard.parallel.cp});
  }
  return activations;
}

}  // namespace engine

#include "engine/training/train_memory.h"

#include <algorithm>

#include "engine/training/state_bytes.h"

namespace engine {
namespace {

constexpr double kValueBytes = 2;

// Devices that the residual stream is split over.
double split_of(const ModelShard& shard, const TrainSettings& train) {
  return train.sequence_parallel ? double(shard.parallel.tp) : 1;
}

// Values that a layer keeps of a token for its backward pass: what goes into its norms, its products, its attention and
// its activation.
double kept_of_a_token(const ModelShard& shard, const TrainSettings& train, bool mixture) {
  const ModelSpec& model = *shard.model;
  const double split = split_of(shard, train);
  const double stream = 4 * double(model.hidden) / split;
  double attention = double(2 * shard.heads + 2 * shard.kv_heads) * double(model.head_dim);
  // A rotation in several kernels keeps its operands twice over (PyTorch 2.11, eager).
  if (!train.fused)
    attention += double(2 * shard.heads + 2 * shard.kv_heads) * double(model.head_dim);
  if (model.is_mla()) {
    const double key = double(model.mla.nope_dim + model.mla.rope_dim);
    attention = double(shard.heads) * (2 * key + 2 * double(model.mla.value_dim)) +
                double(model.mla.q_rank + model.mla.kv_rank + model.mla.rope_dim);
  }
  const double statistics = 2 * double(shard.heads);  // a 32-bit number a head
  // A gated activation keeps both of its inputs, the half that was activated, and its output.
  const double widths = model.mlp == MlpKind::gated ? 4 : 2;
  if (!mixture) return stream + attention + statistics + widths * double(shard.intermediate);
  // Copies of tokens that meet on this device.
  const double copies = double(model.moe.top_k) * double(shard.experts.local) /
                        double(shard.experts.placed) * double(shard.expert_replicas);
  return stream + attention + statistics + widths * double(shard.shared_intermediate) +
         copies * (widths * double(shard.expert_intermediate) + 2 * double(model.hidden));
}

double tokens_of(const TrainSettings& train) {
  return double(train.micro_batch) * double(train.sequence);
}

// Of one pass through a chunk, and of the layer that is computed again where layers are.
struct ActivationBytes {
  double kept = 0;
  double at_work = 0;
};
ActivationBytes activations_of(const ModelShard& shard, const StageSpan& span,
                               const TrainSettings& train) {
  const double bytes = tokens_of(train) * kValueBytes;
  const double dense = kept_of_a_token(shard, train, false) * bytes;
  const double mixture = span.layers.mixture > 0 ? kept_of_a_token(shard, train, true) * bytes : 0;
  if (train.recompute == Recompute::full) {
    const double input = double(shard.model->hidden) / split_of(shard, train) * bytes;
    return {double(span.layers.all()) * input,
            std::max(span.layers.dense > 0 ? dense : 0, mixture)};
  }
  const double statistics =
      train.recompute == Recompute::attention ? 2 * double(shard.heads) * bytes : 0;
  return {double(span.layers.dense) * (dense - statistics) +
              double(span.layers.mixture) * (mixture - statistics),
          0};
}

}  // namespace

StateSharing replicas_of(const Parallelism& parallel) {
  const double replicas = double(parallel.dp * parallel.cp);
  const double sharing = std::max(1.0, double(parallel.ep) / double(parallel.tp));
  return {replicas, std::max(1.0, replicas / sharing)};
}

TrainMemory chunk_memory(const ModelShard& shard, const StageLoad& load,
                         const TrainSettings& train) {
  const ChunkWeights weights = chunk_weights(shard, load.span);
  const StateSharing replicas = replicas_of(shard.parallel);
  const StateBytes bytes = state_bytes(train);
  const auto kept = [&](double each, std::int64_t shared_from) {
    const bool shared = train.zero >= shared_from;
    return Bytes{each * (weights.dense / (shared ? replicas.dense : 1) +
                         weights.experts / (shared ? replicas.experts : 1))};
  };
  TrainMemory memory{.weights = kept(bytes.weights, 3),
                     .gradients = kept(bytes.gradients, 2),
                     .optimizer = kept(bytes.optimizer(), 1)};
  const ActivationBytes activations = activations_of(shard, load.span, train);
  memory.activations = Bytes{load.passes * activations.kept + activations.at_work};
  if (load.span.last) {
    // In 16 and 32 bits, or these and their gradients in both.
    const double bytes_of_a_logit = train.fused_loss ? 6 : 12;
    memory.logits = Bytes{bytes_of_a_logit * tokens_of(train) * double(shard.vocabulary)};
  }
  if (train.zero == 3) {
    // The layer at work and the next one, with the gradients of the former.
    const double layer =
        weights.total() / double(std::max<std::int64_t>(1, load.span.layers.all()));
    memory.gathered = Bytes{layer * (2 * bytes.weights + bytes.gradients)};
  }
  return memory;
}

}  // namespace engine

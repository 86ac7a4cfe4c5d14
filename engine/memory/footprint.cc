#include "engine/memory/footprint.h"

#include <algorithm>
#include <cmath>

namespace engine {
namespace {

// Channels and staging buffers of NCCL and a custom all-reduce: an engine's memory outside its tensors
// grows by about this much when a second device joins (logs of vLLM on H100).
constexpr Bytes kCommunicationBuffers{0.45e9};

double stage_share(const ModelShard& shard) {
  const double layers = double(shard.model->layers);
  return std::ceil(layers / double(shard.parallel.pp)) / layers;
}

Bytes weight_bytes(const ModelShard& shard) {
  const ModelSpec& model = *shard.model;
  const ParameterCounts counts = parameter_counts(model);
  const double tp = double(shard.parallel.tp);
  // KV heads are repeated when there are fewer of them than devices.
  const double repeated_kv =
      model.is_mla() ? 0
                     : 2.0 * double(model.layers) * double(model.head_dim) * double(model.hidden) *
                           (double(shard.kv_heads) - double(model.kv_heads) / tp);
  const double expert_share =
      double(shard.experts.local) / double(std::max<std::int64_t>(1, model.moe.experts)) *
      double(shard.expert_intermediate) / double(std::max<std::int64_t>(1, model.moe.intermediate));
  const double matrices = (counts.attention + counts.dense_mlp) / tp + repeated_kv;
  const double experts = counts.experts * expert_share;
  const double share = stage_share(shard);
  // Embeddings stay in 16 bits, at the two ends of the pipeline; one stage holds both if there is
  // only one.
  const double ends = shard.parallel.pp > 1 ? std::max(counts.embedding, counts.output)
                                            : counts.embedding + counts.output;
  return Bytes{stored_bytes(matrices * share, shard.dense.weights, shard.dense.group) +
               stored_bytes(experts * share, shard.quant.weights, shard.quant.group) +
               2 * ends / tp + 2 * counts.norms * share};
}

Bytes activation_bytes(const ModelShard& shard, const MemoryBudget& budget) {
  const ModelSpec& model = *shard.model;
  const double tokens = double(budget.step_tokens);
  // Two copies of the residual stream plus the wider of the attention and the MLP buffers.
  const double head =
      double(model.is_mla() ? model.mla.nope_dim + model.mla.rope_dim : model.head_dim);
  const double attention = double(2 * shard.heads + 2 * shard.kv_heads) * head;
  const double gates = model.mlp == MlpKind::gated ? 3 : 2;
  double mlp = shard.layers.dense > 0 ? gates * double(shard.intermediate) : 0;
  if (model.is_moe()) {
    const double copies = double(model.moe.top_k) * double(shard.experts.local) /
                          double(shard.experts.placed) * double(shard.expert_replicas);
    mlp = std::max(mlp,
                   copies * (gates * double(shard.expert_intermediate) + 2 * double(model.hidden)));
  }
  const double stream = 2 * double(model.hidden);
  // The sampled rows have the whole vocabulary after the gather; the last layer's output is still there.
  const double sampling =
      double(budget.step_sampled) * double(model.vocabulary) * budget.per_logit.value +
      tokens * stream * 2;
  return Bytes{std::max(tokens * (stream + std::max(attention, mlp)) * 2, sampling)};
}

}  // namespace

Footprint footprint_of(const ModelShard& shard, const Device& device, const MemoryBudget& budget) {
  const bool alone = shard.parallel.tp * shard.parallel.pp == 1 && shard.expert_replicas == 1;
  Footprint footprint{.weights = weight_bytes(shard) + budget.beside,
                      .activations = activation_bytes(shard, budget),
                      .reserved = budget.reserved + (alone ? Bytes{0} : kCommunicationBuffers)};
  const Bytes fixed = footprint.weights + footprint.activations + footprint.reserved;
  const Bytes outside =
      budget.of == MemoryShare::whole ? Bytes{0} : std::min(fixed, device.memory_capacity);
  footprint.budget = outside + (device.memory_capacity - outside) * budget.utilization;
  return footprint;
}

Bytes kv_bytes(const ModelShard& shard, double context) {
  const ModelSpec& model = *shard.model;
  const double kept = model.window > 0 ? std::min(context, double(model.window)) : context;
  const double tokens = double(shard.layers.full) * context + double(shard.layers.windowed) * kept;
  // A latent is shared by all heads, so every tensor-parallel device keeps a whole copy.
  const double width = model.is_mla() ? double(model.mla.kv_rank + model.mla.rope_dim)
                                      : 2 * double(shard.kv_heads * model.head_dim);
  return Bytes{tokens * width * bytes_of(shard.quant.kv) * stage_share(shard)};
}

}  // namespace engine

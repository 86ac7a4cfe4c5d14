#include "engine/memory/footprint.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "engine/model/context_ops.h"
#include "engine/model/mixers/mixer.h"
#include "engine/model/passes.h"

namespace engine {
namespace {

// Channels and staging buffers of NCCL and a custom all-reduce: an engine's memory outside its tensors
// grows by about this much when a second device joins (logs of vLLM on H100).
constexpr Bytes kCommunicationBuffers{0.45e9};

double stage_share(const ModelShard& shard) {
  const double layers = double(shard.model->layers);
  return std::ceil(layers / double(shard.parallel.pp)) / layers;
}

// What one of the devices that read a prompt together keeps of its KV cache: the tokens or the heads that it has. Heads
// that are fewer than devices are kept by several of them, and a latent is of all heads.
double kept_share(const ModelShard& shard, const Mixer& mixer) {
  const double parts = double(shard.shared_prompts.devices);
  const bool by_keys = shard.shared_prompts.exchange == ContextExchange::all_to_all;
  if (!by_keys || mixer.shares_heads) return 1 / parts;
  return 1 / std::min(parts, shard.model->is_mla() ? 1 : double(shard.kv_heads));
}

// Weights of routed experts as they lie in memory, with zeros that fill up tiles, over the model's own.
double filled_up(const ModelShard& shard) {
  const ExpertWidths own{shard.model->hidden, shard.expert_intermediate};
  if (!marlin_runs(shard.four_bit_experts, shard.quant.weights, shard.quant.activations)) return 1;
  const ExpertWidths kept = marlin_widths(own);
  return double(kept.hidden * kept.intermediate) / double(own.hidden * own.intermediate);
}

Bytes weight_bytes(const ModelShard& shard) {
  const ModelSpec& model = *shard.model;
  const ParameterCounts counts = parameter_counts(model);
  const double tp = double(shard.parallel.tp);
  double repeated = 0;
  for (const Mixer* mixer : kMixers) {
    if (const std::int64_t own = mixer->layers(model, shard.layers)) {
      repeated += double(own) * mixer->repeated_parameters(shard);
    }
  }
  const double expert_share =
      double(shard.experts.local) / double(std::max<std::int64_t>(1, model.moe.experts)) *
      double(shard.expert_intermediate) / double(std::max<std::int64_t>(1, model.moe.intermediate));
  const double mixers = counts.attention / tp + repeated;
  // Routers, and gates of shared experts, are whole on every device and in 16 bits.
  const double routers =
      model.is_moe() ? double(layer_counts(model).mixture) * shared_parameters(model, 0) : 0;
  const double experts = model.is_moe() ? counts.experts * expert_share * filled_up(shard) : 0;
  const double share = stage_share(shard);
  const double value = bytes_of(unquantized(shard.quant.activations));
  // Embeddings are not quantised; they lie at the two ends of the pipeline; one stage holds both if there is
  // only one.
  const double ends = shard.parallel.pp > 1 ? std::max(counts.embedding, counts.output)
                                            : counts.embedding + counts.output;
  return Bytes{stored_bytes(mixers * share, shard.mixers.weights, shard.mixers.group) +
               stored_bytes((counts.dense_mlp - routers) / tp * share, shard.dense.weights,
                            shard.dense.group) +
               value * routers * share +
               stored_bytes(experts * share, shard.quant.weights, shard.quant.group) +
               value * ends / tp + value * counts.norms * share};
}

Bytes activation_bytes(const ModelShard& shard, const MemoryBudget& budget) {
  const ModelSpec& model = *shard.model;
  if (model.is_network()) {
    const double values = double(budget.step_tokens) * most_values(network_layers(model.network));
    return Bytes{values * bytes_of(shard.dense.activations)};
  }
  const double together = double(shard.shared_prompts.devices);
  const double tokens = std::ceil(double(budget.step_tokens) / together);
  // Two copies of the residual stream plus the wider of the attention and the MLP buffers.
  double attention = 0;
  for (const Mixer* mixer : kMixers) {
    if (mixer->layers(model, shard.layers) > 0) {
      attention = std::max(attention, mixer->buffer(shard));
    }
  }
  if (together > 1) attention += mean_widths(shard).keys * foreign_context(shard.shared_prompts);
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
  const double value = bytes_of(unquantized(shard.quant.activations));
  return Bytes{std::max(tokens * (stream + std::max(attention, mlp)) * value, sampling)};
}

}  // namespace

Footprint footprint_of(const ModelShard& shard, const Device& device, const MemoryBudget& budget) {
  const bool alone = shard.parallel.devices_of_replica() == 1 && shard.expert_replicas == 1;
  Footprint footprint{.weights = weight_bytes(shard) + budget.beside,
                      .activations = activation_bytes(shard, budget),
                      .reserved = budget.reserved + (alone ? Bytes{0} : kCommunicationBuffers)};
  const Bytes buffers = footprint.activations + footprint.reserved;
  const Bytes all = device.memory_capacity;
  switch (budget.of) {
    case MemoryShare::whole:
      footprint.budget = all * budget.utilization;
      break;
    case MemoryShare::rest: {
      const Bytes outside = std::min(footprint.weights + buffers, all);
      footprint.budget = outside + (all - outside) * budget.utilization;
      break;
    }
    case MemoryShare::model_and_kv:
      footprint.budget = std::min(all, all * budget.utilization + buffers);
      break;
  }
  return footprint;
}

Bytes kv_bytes(const ModelShard& shard, double context) {
  double bytes = 0;
  for (const Mixer* mixer : kMixers) {
    if (mixer->layers(*shard.model, shard.layers) == 0) continue;
    bytes += mixer->cached(shard, context) * kept_share(shard, *mixer);
  }
  return Bytes{bytes * stage_share(shard)};
}

std::string in_gb(Bytes bytes) { return fmt::format("{:.2f} GB", bytes.value / 1e9); }

}  // namespace engine

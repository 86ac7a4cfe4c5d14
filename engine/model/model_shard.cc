#include "engine/model/model_shard.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/model/mixers/mixer.h"

namespace engine {
namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// What is narrow in these formats, in 16 bits instead.
Quantization in_16_bits(Quantization quant) {
  const Dtype half = quant.activations == Dtype::fp16 ? Dtype::fp16 : Dtype::bf16;
  for (Dtype* format : {&quant.weights, &quant.activations}) {
    if (bytes_of(*format) < bytes_of(half)) *format = half;
  }
  return quant;
}

}  // namespace

std::optional<std::string> shard_problem(const ModelSpec& model, const Parallelism& parallel) {
  if (model.is_network()) return std::nullopt;  // whole on one device: its task sees to that
  const auto indivisible = [&parallel](std::string_view field, std::int64_t count) {
    return fmt::format("model.{} {} cannot be split {} ways (parallel.tp)", field, count,
                       parallel.tp);
  };
  if (model.mla.kv_rank == 0 && model.heads % model.kv_heads != 0) {
    return fmt::format("model.heads {} is not a multiple of model.kv_heads {}", model.heads,
                       model.kv_heads);
  }
  const LayerCounts layers = layer_counts(model);
  for (const Mixer* mixer : kMixers) {
    if (mixer->layers(model, layers) == 0) continue;
    if (const auto problem = mixer->indivisible(model, parallel.tp)) {
      return indivisible(problem->field, problem->count);
    }
  }
  if (model.intermediate % parallel.tp != 0) {
    return indivisible("intermediate", model.intermediate);
  }
  if (model.is_mla() && model.attention_gate) {
    return "model.attention_gate is not modelled with latent attention (model.mla.kv_rank above 0)";
  }
  if (model.scans() && model.scan.heads % model.scan.groups != 0) {
    return fmt::format("model.scan.heads {} is not a multiple of model.scan.groups {}",
                       model.scan.heads, model.scan.groups);
  }
  if (model.scans() && model.scan.attention_layers > model.layers) {
    return fmt::format("model.scan.attention_layers {} exceeds model.layers {}",
                       model.scan.attention_layers, model.layers);
  }
  if (model.mlp_layers > model.layers) {
    return fmt::format("model.mlp_layers {} exceeds model.layers {}", model.mlp_layers,
                       model.layers);
  }
  if (parallel.pp > model.layers) {
    return "parallel.pp " + std::to_string(parallel.pp) + " exceeds model.layers " +
           std::to_string(model.layers);
  }
  return expert_problem(model, parallel);
}

ModelShard shard_of(const ModelSpec& model, const Parallelism& parallel,
                    const Quantization& quant) {
  ModelShard shard;
  shard.model = &model;
  shard.parallel = parallel;
  shard.quant = quant;
  const Quantization wide = in_16_bits(quant);
  shard.dense = quant.scope == QuantScope::experts ? wide : quant;
  shard.mixers = quant.scope == QuantScope::all ? quant : wide;
  shard.layers = layer_counts(model);
  shard.heads = model.heads / parallel.tp;
  shard.kv_heads = std::max<std::int64_t>(1, model.kv_heads / parallel.tp);
  shard.intermediate = model.intermediate / parallel.tp;
  shard.vocabulary = divide_up(model.vocabulary, parallel.tp);
  if (model.is_moe()) {
    // Up to the tensor-parallel group, expert parallelism replaces splitting each expert; beyond
    // it, several replicas pool their experts and exchange tokens.
    shard.experts = expert_places(model, parallel);
    const std::int64_t split = std::max<std::int64_t>(1, parallel.tp / parallel.ep);
    shard.expert_intermediate = divide_up(model.moe.intermediate, split);
    shard.expert_replicas = std::max<std::int64_t>(1, parallel.ep / parallel.tp);
    shard.shared_intermediate = divide_up(model.moe.shared_intermediate, parallel.tp);
  }
  return shard;
}

}  // namespace engine

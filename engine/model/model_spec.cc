#include "engine/model/model_spec.h"

#include <algorithm>

#include "engine/model/mixers/mixer.h"

namespace engine {
namespace {

double mlp_matrices(const ModelSpec& model) { return model.mlp == MlpKind::gated ? 3 : 2; }

ParameterCounts network_parameters(const ModelSpec& model) {
  ParameterCounts counts;
  for (const NetworkLayer& layer : network_layers(model.network)) {
    counts.dense_mlp += double(layer.times) * layer.weights();
    counts.norms += double(layer.times) * layer.offsets();
  }
  return counts;
}

}  // namespace

LayerCounts layer_counts(const ModelSpec& model) {
  LayerCounts counts;
  if (model.is_network()) return counts;
  if (model.is_moe()) {
    const std::int64_t rest =
        std::max<std::int64_t>(0, model.mlps() - model.moe.first_dense_layers);
    counts.mixture = rest / std::max<std::int64_t>(1, model.moe.every);
  }
  counts.dense = model.mlps() - counts.mixture;
  if (model.scans()) {
    counts.scanning = std::max<std::int64_t>(0, model.layers - model.scan.attention_layers);
  }
  const std::int64_t attending = model.layers - counts.scanning;
  if (model.window == 0) {
    counts.full = attending;
  } else if (model.full_attention_every > 0) {
    counts.full = attending / model.full_attention_every;
  }
  counts.windowed = attending - counts.full;
  return counts;
}

ParameterCounts parameter_counts(const ModelSpec& model) {
  if (model.is_network()) return network_parameters(model);
  const LayerCounts layers = layer_counts(model);
  const double hidden = double(model.hidden);
  ParameterCounts counts;
  for (const Mixer* mixer : kMixers) {
    if (const std::int64_t own = mixer->layers(model, layers)) {
      counts.attention += double(own) * mixer->parameters(model);
    }
  }
  counts.dense_mlp =
      double(layers.dense) * mlp_matrices(model) * hidden * double(model.intermediate);
  counts.dense_mlp += double(layers.all() * model.modulation) * hidden * hidden;
  if (model.is_moe()) {
    counts.dense_mlp +=
        double(layers.mixture) * shared_parameters(model, model.moe.shared_intermediate);
    counts.experts = double(layers.mixture * model.moe.experts) * mlp_matrices(model) * hidden *
                     double(model.moe.intermediate);
  }
  counts.embedding = double(model.vocabulary) * hidden;
  if (!model.rotary) counts.embedding += double(model.max_context) * hidden;
  counts.output = model.tied_embeddings ? 0 : double(model.vocabulary) * hidden;
  counts.norms =
      double(layers.all() * model.mixer_norms() + layers.mlps() * model.mlp_norms() + 1) * hidden;
  return counts;
}

double shared_parameters(const ModelSpec& model, std::int64_t shared_intermediate) {
  const double gate = model.moe.shared_gate && model.moe.shared_intermediate > 0 ? 1 : 0;
  return double(model.hidden) *
         (mlp_matrices(model) * double(shared_intermediate) + double(model.moe.experts) + gate);
}

double active_parameters(const ModelSpec& model) {
  const ParameterCounts counts = parameter_counts(model);
  if (!model.is_moe()) return counts.total();
  const double share = double(model.moe.top_k) / double(model.moe.experts);
  return counts.total() - counts.experts * (1 - share);
}

}  // namespace engine

#include "engine/training/pipeline/stages.h"

#include <algorithm>

#include "engine/model/mixers/mixer.h"

namespace engine {
namespace {

// Some of the layers have something, spread evenly: which of those this one is, where it is one.
struct Spread {
  std::int64_t some, layers;

  std::int64_t before(std::int64_t layer) const { return layer * some / layers; }
};

// What the layers before this one are. Counted by division: a model may have a billion of them.
LayerCounts counts_before(const ModelSpec& model, std::int64_t layer) {
  LayerCounts counts;
  if (model.layers == 0) return counts;
  const std::int64_t mlps = Spread{model.mlps(), model.layers}.before(layer);
  if (model.is_moe()) {
    const std::int64_t after_dense = std::max<std::int64_t>(0, mlps - model.moe.first_dense_layers);
    counts.mixture = after_dense / std::max<std::int64_t>(1, model.moe.every);
  }
  counts.dense = mlps - counts.mixture;
  const Spread attending{model.scans() ? model.scan.attention_layers : model.layers, model.layers};
  const std::int64_t attend = attending.before(layer);
  counts.scanning = layer - attend;
  if (model.window == 0) {
    counts.full = attend;
  } else if (model.full_attention_every > 0) {
    counts.full = attend / model.full_attention_every;
  }
  counts.windowed = attend - counts.full;
  return counts;
}

LayerCounts counts_between(const ModelSpec& model, std::int64_t from, std::int64_t upto) {
  const LayerCounts before = counts_before(model, from);
  LayerCounts counts = counts_before(model, upto);
  counts.dense -= before.dense;
  counts.mixture -= before.mixture;
  counts.full -= before.full;
  counts.windowed -= before.windowed;
  counts.scanning -= before.scanning;
  return counts;
}

// Layers divided evenly among chunks.
struct EvenCut {
  std::int64_t layers, chunks;

  std::int64_t layers_of(std::int64_t chunk) const {
    const std::int64_t each = layers / chunks, longer = layers % chunks;
    const std::int64_t first_longer = (chunks - longer) / 2;
    return each + (chunk >= first_longer && chunk < first_longer + longer ? 1 : 0);
  }
};

// Stated numbers of layers of the first and the last stage; 0: these are like the others.
struct StatedEnds {
  std::int64_t first, last, stages, turns;

  std::int64_t stated() const { return (first > 0 ? 1 : 0) + (last > 0 ? 1 : 0); }
  EvenCut others(std::int64_t layers) const {
    return {layers - first - last, (stages - stated()) * turns};
  }
  std::int64_t layers_of(std::int64_t chunk, const EvenCut& even) const {
    const std::int64_t stage = chunk % stages, turn = chunk / stages;
    if (stage == 0 && first > 0) return (first + turn) / turns;
    if (stage == stages - 1 && last > 0) return (last + turns - 1 - turn) / turns;
    return even.layers_of(turn * (stages - stated()) + stage - (first > 0 ? 1 : 0));
  }
};

}  // namespace

Schedule schedule_on(const TrainSettings& train, std::int64_t stages) {
  const bool one_chunk = train.schedule == Schedule::interleaved && train.virtual_stages == 1;
  return stages == 1 || one_chunk ? Schedule::one_f_one_b : train.schedule;
}

std::int64_t chunks_per_stage(const TrainSettings& train, std::int64_t stages) {
  const Schedule schedule = schedule_on(train, stages);
  return schedule == Schedule::interleaved  ? train.virtual_stages
         : schedule == Schedule::dualpipe_v ? 2
                                            : 1;
}

std::int64_t chunk_copies(const TrainSettings& train, std::int64_t stages) {
  return schedule_on(train, stages) == Schedule::dualpipe ? 2 : 1;
}

void cut_into_chunks(const ModelSpec& model, const TrainSettings& train, const ChunkCounts& chunks,
                     std::vector<LayerChunk>& cut) {
  cut.assign(std::size_t(chunks.all), {});
  const bool stated = chunks.tail > 0 && train.tail_layers > 0;
  const std::int64_t tail = stated ? chunks.tail : 0, tail_layers = stated ? train.tail_layers : 0;
  const StatedEnds ends{chunks.stages > 1 ? train.first_stage_layers : 0,
                        chunks.stages > 1 ? train.last_stage_layers : 0, chunks.stages,
                        chunks.all / chunks.stages};
  const EvenCut between = ends.others(model.layers);
  const EvenCut head{model.layers - tail_layers, chunks.all - tail}, rest{tail_layers, tail};
  const std::int64_t first_trained =
      train.method == Method::last_layers ? model.layers - train.trained_layers : 0;
  std::int64_t layer = 0;
  for (std::int64_t c = 0; c < chunks.all; ++c) {
    LayerChunk& chunk = cut[std::size_t(c)];
    chunk.span.first = c == 0;
    chunk.span.last = chunk.trained.last = c == chunks.all - 1;
    // The embedding is trained only where all weights are.
    chunk.trained.first = chunk.span.first && train.method == Method::full;
    const std::int64_t own = ends.stated() > 0 ? ends.layers_of(c, between)
                             : c < head.chunks ? head.layers_of(c)
                                               : rest.layers_of(c - head.chunks);
    const std::int64_t end = layer + std::max<std::int64_t>(0, own);
    chunk.span.layers = counts_between(model, layer, end);
    chunk.trained.layers = counts_between(model, std::clamp(first_trained, layer, end), end);
    layer = end;
  }
}

ChunkWeights chunk_weights(const ModelShard& shard, const StageSpan& span) {
  const ModelSpec& model = *shard.model;
  const ParameterCounts counts = parameter_counts(model);
  const LayerCounts all = layer_counts(model);
  const double tp = double(shard.parallel.tp), hidden = double(model.hidden);
  const double matrices = model.mlp == MlpKind::gated ? 3 : 2;
  const double layers = double(span.layers.all());
  ChunkWeights weights{.layers = layers, .mixtures = double(span.layers.mixture)};
  const double norms =
      double(span.layers.all() * model.mixer_norms() + span.layers.mlps() * model.mlp_norms()) *
      hidden;
  double whole = norms + (span.last ? hidden : 0);  // on every device
  weights.dense =
      norms + double(span.layers.dense) * matrices * hidden * double(shard.intermediate);
  for (const Mixer* mixer : kMixers) {
    if (const std::int64_t own = mixer->layers(model, span.layers)) {
      const double repeated = mixer->repeated_parameters(shard);
      weights.dense += double(own) * (mixer->parameters(model) / tp + repeated);
      weights.repeated += double(own) * repeated;
    }
  }
  if (all.mixture > 0) {
    const double mixtures = double(span.layers.mixture);
    whole += mixtures * shared_parameters(model, 0);
    weights.dense += mixtures * shared_parameters(model, shard.shared_intermediate);
    weights.experts = mixtures * double(shard.experts.local) * matrices * hidden *
                      double(shard.expert_intermediate);
  }
  weights.repeated += whole * (1 - 1 / tp);
  // A tied matrix is the output where one stage has both ends, and a copy of the embedding elsewhere.
  const bool tied_here = model.tied_embeddings && span.last;
  if (span.first && !tied_here) weights.embedding = counts.embedding / tp;
  if (span.last) weights.output = (tied_here ? counts.embedding : counts.output) / tp + hidden;
  weights.dense += weights.ends();
  return weights;
}

}  // namespace engine

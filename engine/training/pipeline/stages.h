// Which layers of a model lie on which pipeline stage.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/model_ops.h"
#include "engine/model/model_shard.h"
#include "engine/training/settings/train_settings.h"

namespace engine {

// Weights and activations are in 32 bits, and stay so. Else activations between products are in 16 bits.
inline bool trains_wide(const Quantization& quant) {
  return is_wide(quant.weights) && is_wide(quant.activations);
}
inline bool trains_wide(const ModelShard& shard) { return trains_wide(shard.quant); }
inline double value_bytes(const ModelShard& shard) { return trains_wide(shard) ? 4 : 2; }

// The formats in which products meet: weights that are wider than activations are cast to these on their way (passes/weight_passes.h).
// Weights in four bits (qlora) are expanded to 16, and multiplied so.
inline Quantization multiplied(Quantization quant, Method method) {
  const bool cast =
      method != Method::qlora && bytes_of(quant.weights) > bytes_of(quant.activations);
  if (cast) quant.weights = quant.activations;
  return quant;
}

// A chunk of layers, and the part of it that gradients pass through.
struct LayerChunk {
  StageSpan span;
  StageSpan trained;

  bool has_gradients() const { return trained.layers.all() > 0 || trained.first || trained.last; }
  bool operator==(const LayerChunk&) const = default;
};

// The schedule that `stages` stages follow. With one stage, or one chunk of layers on each, that is 1F1B.
Schedule schedule_on(const TrainSettings& train, std::int64_t stages);
// Chunks of layers that each of `stages` stages has.
std::int64_t chunks_per_stage(const TrainSettings& train, std::int64_t stages);
// Copies of each chunk in a pipeline of `stages` stages: dualpipe has one for either direction.
std::int64_t chunk_copies(const TrainSettings& train, std::int64_t stages);

// How many chunks there are, on how many stages in turn; of these, the last ones have train.tail_layers together, where that is stated.
struct ChunkCounts {
  std::int64_t all = 1;
  std::int64_t stages = 1;
  std::int64_t tail = 0;
};
// Cuts the layers into chunks as equal as can be, the longer ones in the middle: the first chunk has the embedding and
// the last one the logits beside its layers. Where the first or the last stage has a stated number of layers
// (train.first_stage_layers), so have its chunks, and that with the embedding or the logits has least.
void cut_into_chunks(const ModelSpec& model, const TrainSettings& train, const ChunkCounts& chunks,
                     std::vector<LayerChunk>& cut);

// Weights that one device holds of a chunk.
struct ChunkWeights {
  double dense = 0;      // copied to every data-parallel replica
  double experts = 0;    // copied to every replica that does not share them
  double embedding = 0;  // of the dense ones
  double output = 0;     // of the dense ones
  double layers = 0;     // that the others lie in,
  double mixtures = 0;   // and the experts
  double repeated = 0;   // of the dense ones: what this device has beyond its share of one copy

  double total() const { return dense + experts; }
  double ends() const { return embedding + output; }
  // Weights of the largest layer. Only mixtures have experts.
  ChunkWeights layer() const {
    return {.dense = layers > 0 ? (dense - ends()) / layers : 0,
            .experts = mixtures > 0 ? experts / mixtures : 0};
  }
};
ChunkWeights chunk_weights(const ModelShard& shard, const StageSpan& span);

}  // namespace engine

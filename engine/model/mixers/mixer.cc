#include "engine/model/mixers/mixer.h"

#include <algorithm>

namespace engine {

MixerWidths mean_widths(const ModelShard& shard) {
  MixerWidths mean;
  for (const Mixer* mixer : kMixers) {
    const std::int64_t layers = mixer->layers(*shard.model, shard.layers);
    if (layers == 0) continue;
    const double share = double(layers) / double(shard.layers.all());
    const MixerWidths own = mixer->widths(shard);
    mean.query += share * own.query;
    mean.keys += share * own.keys;
    mean.output += share * own.output;
    mean.compressed += share * own.compressed;
    mean.positions += share * own.positions;
    mean.unfused += share * own.unfused;
  }
  return mean;
}

double cached_tokens(const ModelShard& shard, double context) {
  const double window = double(shard.model->window);
  const double kept = window > 0 ? std::min(context, window) : context;
  return double(shard.layers.full) * context + double(shard.layers.windowed) * kept;
}

void add_prompt_attention(Family family, AttentionPrefill op, const ModelShard& shard,
                          const StageSpan& span, const BatchShape& batch, OpList& ops) {
  ops.add(OpName::attention, family, double(span.layers.full), op, Grows::context);
  op.window = shard.model->window;
  op.pairs = batch.prefill_window_pairs;
  op.kv_tokens = batch.prefill_window_kv_tokens;
  ops.add(OpName::attention_window, family, double(span.layers.windowed), op, Grows::context);
}

void add_decode_attention(Family family, AttentionDecode op, const ModelShard& shard,
                          const StageSpan& span, const BatchShape& batch, OpList& ops) {
  ops.add(OpName::attention, family, double(span.layers.full), op, Grows::context);
  op.window = shard.model->window;
  op.kv_tokens = batch.decode_window_kv_tokens + batch.later_keys();
  op.overhang = 0;  // windows make long contexts alike
  ops.add(OpName::attention_window, family, double(span.layers.windowed), op, Grows::context);
}

bool joinable(const ModelSpec& model) {
  const LayerCounts layers = layer_counts(model);
  return std::ranges::all_of(kMixers, [&](const Mixer* mixer) {
    return mixer->joinable || mixer->layers(model, layers) == 0;
  });
}

}  // namespace engine

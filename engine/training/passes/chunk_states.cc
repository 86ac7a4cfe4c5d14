#include "engine/training/passes/chunk_states.h"

#include <algorithm>

#include "engine/training/passes/adapters.h"
#include "engine/training/passes/state_bytes.h"

namespace engine {

StateSharing replicas_of(const Parallelism& parallel, const TrainSettings& train) {
  const double replicas = double(parallel.dp * parallel.cp);
  const double sharing = std::max(1.0, double(parallel.ep) / double(parallel.tp));
  const double copies = double(chunk_copies(train, parallel.pp));
  return {copies * replicas, copies * std::max(1.0, replicas / sharing)};
}

StateSharing sharers_of(const Parallelism& parallel, const TrainSettings& train) {
  const StateSharing all = replicas_of(parallel, train);
  if (train.zero_group == 0) return all;
  const double group = std::min(all.dense, double(train.zero_group));
  // Of neighbours that share experts one has a copy of each.
  return {group, std::clamp(group * all.experts / all.dense, 1.0, all.experts)};
}

namespace {

constexpr double kWide = 2;

// Of matrices that products take as they are.
NarrowBytes narrow_bytes(const ModelShard& shard) {
  const auto narrow = [](Dtype format) { return bytes_of(format) < kWide ? bytes_of(format) : 0; };
  return {narrow(shard.dense.activations), narrow(shard.quant.activations)};
}
// Of matrices as they are stored, with their scales.
NarrowBytes stored_narrow(const ModelShard& shard) {
  const auto narrow = [](const Quantization& quant) {
    const bool is_narrow = bytes_of(quant.weights) < kWide;
    return is_narrow ? stored_bytes(1, quant.weights, quant.group) : 0;
  };
  return {narrow(shard.dense), narrow(shard.quant)};
}

}  // namespace

ChunkWeights bytes_of_all(const ChunkWeights& weights, double wide, const NarrowBytes& narrow) {
  const double dense = narrow.dense > 0 ? narrow.dense : wide;
  const double experts = narrow.experts > 0 ? narrow.experts : wide;
  return {.dense = dense * (weights.dense - weights.ends()) + wide * weights.ends(),
          .experts = experts * weights.experts,
          .embedding = wide * weights.embedding,
          .output = wide * weights.output,
          .layers = weights.layers,
          .mixtures = weights.mixtures};
}

NarrowBytes kept_narrow(const ModelShard& shard, const TrainSettings& train) {
  if (train.has_adapters()) return stored_narrow(shard);
  return train.narrow_parameters ? narrow_bytes(shard) : NarrowBytes{};
}

NarrowBytes sent_narrow(const ModelShard& shard, const TrainSettings& train) {
  const bool wide = train.has_adapters() || is_microscaled(multiplied(shard.quant, train.method));
  return wide ? NarrowBytes{} : kept_narrow(shard, train);
}

ChunkWeights sent_bytes(const ChunkStates& states, const TrainSettings& train) {
  if (train.has_adapters()) return weight_bytes(states, train);
  return bytes_of_all(states.all, state_bytes(train, states.wide).weights, states.sent);
}

ChunkWeights updated_bytes(const ChunkStates& states, const TrainSettings& train) {
  return bytes_of_all(states.trained, state_bytes(train, states.wide).weights, states.sent);
}

ChunkWeights weight_bytes(const ChunkStates& states, const TrainSettings& train) {
  const double wide = state_bytes(train, states.wide).weights;
  const ChunkWeights& all = states.all;
  ChunkWeights bytes = bytes_of_all(all, wide, states.kept);
  if (train.method == Method::lora) bytes.dense += wide * states.trained.dense;
  if (train.method != Method::qlora) return bytes;
  const double frozen = kFourBitBytes;
  bytes.dense = frozen * (all.dense - all.ends()) + wide * (all.ends() + states.trained.dense);
  bytes.experts = frozen * all.experts;
  return bytes;
}

double scatters_per_pass(const TrainSettings& train, std::int64_t stages) {
  if (train.zero < 2) return 0;
  const bool in_rows = train.zero == 2 && schedule_on(train, stages) == Schedule::interleaved;
  return in_rows ? 1 / double(stages) : 1;
}

bool gradients_leave(const ChunkPlace& place, const TrainSettings& train) {
  if (!train.offload_optimizer) return false;
  const bool one_pass = train.global_batch == train.micro_batch * place.shard.parallel.dp;
  return one_pass || replicas_of(place.shard.parallel, train).dense == 1 ||
         scatters_each_pass(train, place.stages);
}

}  // namespace engine

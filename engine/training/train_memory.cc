#include "engine/training/train_memory.h"

#include <algorithm>

#include "engine/training/adapters.h"
#include "engine/training/state_bytes.h"
#include "engine/training/weight_passes.h"

namespace engine {

StateSharing replicas_of(const Parallelism& parallel) {
  const double replicas = double(parallel.dp * parallel.cp);
  const double sharing = std::max(1.0, double(parallel.ep) / double(parallel.tp));
  return {replicas, std::max(1.0, replicas / sharing)};
}

StateSharing sharers_of(const Parallelism& parallel, const TrainSettings& train) {
  const StateSharing all = replicas_of(parallel);
  if (train.zero_group == 0) return all;
  const double group = std::min(all.dense, double(train.zero_group));
  // Of neighbours that share experts one has a copy of each.
  return {group, std::clamp(group * all.experts / all.dense, 1.0, all.experts)};
}

ChunkWeights weight_bytes(const ChunkStates& states, const TrainSettings& train) {
  const double wide = state_bytes(train, states.wide).weights;
  const ChunkWeights& all = states.all;
  ChunkWeights bytes{.dense = wide * all.dense,
                     .experts = wide * all.experts,
                     .embedding = wide * all.embedding,
                     .output = wide * all.output,
                     .layers = all.layers,
                     .mixtures = all.mixtures};
  if (!train.has_adapters()) return bytes;
  const double frozen = train.method == Method::qlora ? kFourBitBytes : wide;
  bytes.dense = frozen * (all.dense - all.ends()) + wide * (all.ends() + states.trained.dense);
  bytes.experts = frozen * all.experts;
  return bytes;
}

bool scatters_each_pass(const TrainSettings& train, std::int64_t stages) {
  return train.zero == 3 || (train.zero == 2 && stages == 1);
}

bool gradients_leave(const ChunkPlace& place, const TrainSettings& train) {
  if (!train.offload_optimizer) return false;
  const bool one_pass = train.global_batch == train.micro_batch * place.shard.parallel.dp;
  return one_pass || replicas_of(place.shard.parallel).dense == 1 ||
         scatters_each_pass(train, place.stages);
}

namespace {

// What one unit at a time takes: a layer, the output or the embedding.
struct UnitBytes {
  double layer = 0, output = 0, embedding = 0;
  double largest() const { return std::max({layer, output, embedding}); }
};

// Units of weights of which `each` counts, in bytes of `each` weight.
template <class Count>
UnitBytes units_of(const ChunkWeights& weights, double each, Count&& count) {
  return {.layer = each * count(weights.layer()),
          .output = each * count({.dense = weights.output}),
          .embedding = each * count({.dense = weights.embedding})};
}

Gathered gathered_memory(const ChunkWeights& read, const ChunkStates& states,
                         const StateSharing& replicas, const TrainSettings& train) {
  const auto of_others = [&](const ChunkWeights& weights) {
    return (replicas.dense > 1 ? weights.dense : 0) + (replicas.experts > 1 ? weights.experts : 0);
  };
  const UnitBytes gradients =
      units_of(states.trained, state_bytes(train, states.wide).gradients, of_others);
  if (!train.reshard) {
    return {of_others(read), gradients.layer, gradients.output, gradients.embedding};
  }
  const UnitBytes weights = units_of(read, 1, of_others);
  return {.layer = weights.layer + weights.layer + gradients.layer,
          .output = weights.output + weights.layer + gradients.output,
          .embedding = weights.embedding + weights.layer + gradients.embedding};
}

}  // namespace

StateMemory state_memory(const ChunkStates& states, const ChunkPlace& place,
                         const TrainSettings& train) {
  const StateSharing replicas = sharers_of(place.shard.parallel, train);
  const StateBytes bytes = state_bytes(train, states.wide);
  const auto shared = [&](const ChunkWeights& weights, bool out) {
    return weights.dense / (out ? replicas.dense : 1) +
           weights.experts / (out ? replicas.experts : 1);
  };
  const ChunkWeights read = weight_bytes(states, train);
  StateMemory memory{
      .weights = Bytes{shared(read, train.zero == 3)},
      .gradients = Bytes{bytes.gradients * shared(states.trained, train.zero >= 2)},
      .optimizer = Bytes{bytes.optimizer() * shared(states.trained, train.zero > 0)}};
  if (train.offload_optimizer) {
    memory.host =
        memory.optimizer + Bytes{bytes.gradients * shared(states.trained, train.zero > 0)};
    memory.optimizer = Bytes{0};
  }
  if (gradients_leave(place, train)) {
    const auto of_device = [&](const ChunkWeights& unit) { return shared(unit, train.zero == 3); };
    const Bytes one_unit{units_of(states.trained, bytes.gradients, of_device).largest()};
    memory.gradients = std::min(memory.gradients, one_unit);
  }
  if (train.zero == 3) memory.gathered = gathered_memory(read, states, replicas, train);
  memory.weights += Bytes{copy_bytes(states.all, place.shard, train)};
  return memory;
}

void StageMemory::add(const StateMemory& states, const KeptActivations& activations,
                      double passes) {
  sum_.weights += states.weights;
  sum_.gradients += states.gradients;
  sum_.optimizer += states.optimizer;
  sum_.activations += Bytes{passes * activations.kept};
  sum_.host += states.host + Bytes{passes * activations.offloaded};
  sum_.logits += Bytes{activations.logits};
  sum_.context = std::max(sum_.context, Bytes{activations.context});
  kept_ += Bytes{states.gathered.kept};
  // The output is at work beside its logits, which are gone when the first layer is computed again; the embedding when nothing of
  // its pass is left.
  const Gathered& gathered = states.gathered;
  const double again = std::max(0.0, activations.at_work - activations.logits);
  const double at_an_end =
      std::max(gathered.output, gathered.embedding - activations.kept - activations.logits);
  const bool layer_takes_most = again + gathered.layer >= at_an_end;
  sum_.at_work =
      std::max(sum_.at_work, Bytes{(layer_takes_most ? again : 0) + activations.in_flight});
  sum_.gathered = std::max(sum_.gathered, Bytes{layer_takes_most ? gathered.layer : at_an_end});
}

TrainMemory StageMemory::sum() const {
  TrainMemory all = sum_;
  all.gathered += kept_;
  return all;
}

}  // namespace engine

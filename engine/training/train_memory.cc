#include "engine/training/train_memory.h"

#include <algorithm>

#include "engine/training/adapters.h"
#include "engine/training/state_bytes.h"

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
  const double wide = state_bytes(train).weights;
  const ChunkWeights& all = states.all;
  if (!train.has_adapters()) return {wide * all.dense, wide * all.experts, wide * all.ends};
  const double frozen = train.method == Method::qlora ? kFourBitBytes : wide;
  return {.dense = frozen * (all.dense - all.ends) + wide * (all.ends + states.trained.dense),
          .experts = frozen * all.experts,
          .ends = wide * all.ends};
}

bool scatters_each_pass(const TrainSettings& train, std::int64_t stages) {
  return train.zero == 3 || (train.zero == 2 && stages == 1);
}

TrainMemory state_memory(const ChunkStates& states, const LayerChunk& chunk,
                         const Parallelism& parallel, const TrainSettings& train) {
  const StateSharing replicas = sharers_of(parallel, train);
  const StateBytes bytes = state_bytes(train);
  const auto shared = [&](const ChunkWeights& weights, bool out) {
    return weights.dense / (out ? replicas.dense : 1) +
           weights.experts / (out ? replicas.experts : 1);
  };
  const ChunkWeights read = weight_bytes(states, train);
  TrainMemory memory{.weights = Bytes{shared(read, train.zero == 3)},
                     .gradients = Bytes{bytes.gradients * shared(states.trained, train.zero >= 2)},
                     .optimizer = Bytes{bytes.optimizer() * shared(states.trained, train.zero > 0)},
                     .stays_gathered = !train.reshard};
  if (train.offload_optimizer) {
    memory.host =
        memory.optimizer + Bytes{bytes.gradients * shared(states.trained, train.zero > 0)};
    memory.optimizer = Bytes{0};
  }
  if (train.zero == 3) {
    // The layer at work and the next one, with the gradients of the former; or all layers.
    const double layers = double(std::max<std::int64_t>(1, chunk.span.layers.all()));
    const double held = train.reshard ? 2 : std::max(2.0, layers);
    const auto of_others = [&](const ChunkWeights& weights) {
      return (replicas.dense > 1 ? weights.dense : 0) +
             (replicas.experts > 1 ? weights.experts : 0);
    };
    memory.gathered =
        Bytes{(held * of_others(read) + bytes.gradients * of_others(states.trained)) / layers};
  }
  return memory;
}

void add_chunk(const TrainMemory& states, const KeptActivations& activations, double passes,
               TrainMemory& sum) {
  sum.weights += states.weights;
  sum.gradients += states.gradients;
  sum.optimizer += states.optimizer;
  // Logits are gone when the first layer is computed again.
  const double again = std::max(0.0, activations.at_work - activations.logits);
  sum.activations += Bytes{passes * activations.kept};
  sum.at_work = std::max(sum.at_work, Bytes{again + activations.in_flight});
  sum.host += states.host + Bytes{passes * activations.offloaded};
  sum.logits += Bytes{activations.logits};
  sum.gathered = states.stays_gathered ? sum.gathered + states.gathered
                                       : std::max(sum.gathered, states.gathered);
  sum.context = std::max(sum.context, Bytes{activations.context});
}

}  // namespace engine

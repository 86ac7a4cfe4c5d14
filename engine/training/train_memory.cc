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

// Of so many weights, each of them `wide` but for those of layers that are narrow.
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

}  // namespace

NarrowBytes kept_narrow(const ModelShard& shard, const TrainSettings& train) {
  if (train.has_adapters()) return stored_narrow(shard);
  return train.narrow_parameters ? narrow_bytes(shard) : NarrowBytes{};
}

NarrowBytes sent_narrow(const ModelShard& shard, const TrainSettings& train) {
  const bool wide = train.has_adapters() || is_microscaled(shard.quant);
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
  const bool in_rows = train.zero == 2 && chunks_per_stage(train, stages) > 1;
  return in_rows ? 1 / double(stages) : 1;
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

// Those that several replicas have.
double of_others(const ChunkWeights& weights, const StateSharing& replicas) {
  return (replicas.dense > 1 ? weights.dense : 0) + (replicas.experts > 1 ? weights.experts : 0);
}

Gathered gathered_memory(const ChunkWeights& read, const ChunkStates& states,
                         const StateSharing& replicas, const TrainSettings& train) {
  const auto shared = [&](const ChunkWeights& weights) { return of_others(weights, replicas); };
  const UnitBytes gradients =
      units_of(states.trained, state_bytes(train, states.wide).gradients, shared);
  const Gathered made{0, gradients.layer, gradients.output, gradients.embedding};
  if (train.zero == 2) return made;
  const UnitBytes weights = units_of(read, 1, shared);
  const double ahead =
      train.reshard ? weights.layer * std::min(double(train.prefetch), std::max(1.0, read.layers))
                    : 0;
  Gathered gathered = made;
  if (train.reshard) {
    gathered.layer += weights.layer + ahead;
    gathered.output += weights.output + ahead;
    gathered.embedding += weights.embedding + ahead;
  } else {
    gathered.kept = shared(read);
  }
  if (!train.root_unit) return gathered;
  // One tensor holds the weights of both ends, and one their gradients, from the output's turn to the embedding's.
  if (train.reshard) gathered.kept = weights.output + weights.embedding;
  gathered.kept += gradients.output + gradients.embedding;
  gathered.output = gathered.embedding = ahead;
  return gathered;
}

// Models whose weights only scoring needs. Where adapters are trained the frozen weights are those of the first.
double reference_models(const TrainSettings& train) {
  const RolloutSettings& rollout = train.rollout;
  if (!rollout.any() || rollout.scoring_passes <= 0) return 0;
  return std::max(0.0, rollout.reference_models - (train.has_adapters() ? 1 : 0));
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
  // Weights are gathered from the optimizer's copy, where that is at hand: replicas share out no other. Adapters that every device
  // has whole are in the optimizer's format and cast on their way into a product (as PEFT keeps them).
  const bool gathers = train.zero == 3 && replicas.dense > 1;
  const bool casts = train.has_adapters() && (train.zero == 0 || replicas.dense == 1);
  if ((gathers || casts) && bytes.master > 0 && !train.offload_optimizer) {
    const double trained = shared(states.trained, gathers);
    const NarrowBytes narrow = train.has_adapters() ? NarrowBytes{} : states.kept;
    const double as_read = shared(bytes_of_all(states.trained, bytes.weights, narrow), gathers);
    memory.weights += Bytes{bytes.master * trained - as_read};
    memory.optimizer -= Bytes{bytes.master * trained};
  }
  if (train.offload_optimizer) {
    memory.host =
        memory.optimizer + Bytes{bytes.gradients * shared(states.trained, train.zero > 0)};
    memory.optimizer = Bytes{0};
  }
  if (gradients_leave(place, train)) {
    const auto of_device = [&](const ChunkWeights& unit) { return shared(unit, train.zero >= 2); };
    const Bytes one_unit{units_of(states.trained, bytes.gradients, of_device).largest()};
    memory.gradients = std::min(memory.gradients, one_unit);
  }
  const double scatters = scatters_per_pass(train, place.stages);
  if (scatters == 1) {
    memory.gathered = gathered_memory(sent_bytes(states, train), states, replicas, train);
  } else if (scatters > 0) {
    memory.row = Bytes{bytes.gradients * of_others(states.trained, replicas)};
  }
  const Bytes reference{reference_models(train) * bytes.weights *
                        shared(states.all, train.zero == 3)};
  const bool away = train.rollout.colocated && train.rollout.offload_states;
  (away ? memory.host_reference : memory.reference) = reference;
  memory.weights += Bytes{copy_bytes(states, place.shard, train)};
  return memory;
}

void StageMemory::add(const StateMemory& states, const KeptActivations& activations,
                      double passes) {
  sum_.weights += states.weights;
  sum_.gradients += states.gradients;
  sum_.optimizer += states.optimizer;
  sum_.activations += Bytes{passes * activations.kept};
  sum_.reference += states.reference;
  sum_.host_reference += states.host_reference;
  sum_.host += states.host + states.host_reference + Bytes{passes * activations.offloaded};
  sum_.logits += Bytes{activations.logits};
  sum_.context = std::max(sum_.context, Bytes{activations.context});
  kept_ += Bytes{states.gathered.kept};
  other_row_ = std::max(other_row_, std::min(row_, states.row));
  row_ = std::max(row_, states.row);
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

TrainMemory StageMemory::sum(const TrainSettings& train) const {
  TrainMemory all = sum_;
  all.gathered += kept_;
  // Gradients of one chunk travel while those of the next are summed up.
  all.gradients += row_ + (train.overlap ? other_row_ : Bytes{0});
  return all;
}

}  // namespace engine

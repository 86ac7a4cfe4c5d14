#include "engine/training/train_memory.h"

#include <algorithm>

#include "engine/training/passes/state_bytes.h"
#include "engine/training/passes/weight_passes.h"

namespace engine {

namespace {

// What one unit at a time takes: a layer, the output or the embedding.
struct UnitBytes {
  double layer = 0, output = 0, embedding = 0;
  double largest() const { return std::max({layer, output, embedding}); }
};

// The part of a layer's weights that its widest matrix is, where matrices are units by themselves.
struct UnitShares {
  bool apart = false;
  double dense = 1, experts = 1;
};
UnitShares unit_shares(const ChunkPlace& place, const ChunkWeights& weights,
                       const TrainSettings& train) {
  if (train.gathered_unit == GatheredUnit::layer) return {};
  const WidestMatrix widest = widest_matrix(place.shard, train);
  const ChunkWeights layer = weights.layer();
  const auto share = [](double matrix, double all) {
    return all > 0 ? std::min(1.0, matrix / all) : 0;
  };
  return {true, share(widest.dense, layer.dense), share(widest.experts, layer.experts)};
}

// Units of weights of which `each` counts, in bytes of `each` weight.
template <class Count>
UnitBytes units_of(const ChunkWeights& weights, double each, const UnitShares& shares,
                   Count&& count) {
  const ChunkWeights layer = weights.layer();
  const double matrix = std::max(count({.dense = shares.dense * layer.dense}),
                                 count({.experts = shares.experts * layer.experts}));
  return {.layer = each * (shares.apart ? matrix : count(layer)),
          .output = each * count({.dense = weights.output}),
          .embedding = each * count({.dense = weights.embedding})};
}

// Weights that several replicas have.
double of_others(const ChunkWeights& weights, const StateSharing& replicas) {
  return (replicas.dense > 1 ? weights.dense : 0) + (replicas.experts > 1 ? weights.experts : 0);
}

Gathered gathered_memory(const ChunkWeights& read, const ChunkStates& states,
                         const ChunkPlace& place, const TrainSettings& train) {
  const StateSharing replicas = sharers_of(place.shard.parallel, train);
  const UnitShares shares = unit_shares(place, states.all, train);
  const auto shared = [&](const ChunkWeights& weights) { return of_others(weights, replicas); };
  const UnitBytes gradients =
      units_of(states.trained, state_bytes(train, states.wide).gradients, shares, shared);
  const Gathered made{0, gradients.layer, gradients.output, gradients.embedding};
  if (train.zero == 2) return made;
  const UnitBytes weights = units_of(read, 1, shares, shared);
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
  const auto of_device = [&](const ChunkWeights& unit) { return shared(unit, train.zero >= 2); };
  memory.unit = Bytes{units_of(states.trained, bytes.gradients, {}, of_device).largest()};
  memory.embedding = Bytes{bytes.gradients * of_device({.dense = states.trained.embedding})};
  if (gradients_leave(place, train)) memory.gradients = std::min(memory.gradients, memory.unit);
  const double scatters = scatters_per_pass(train, place.stages);
  if (scatters == 1) {
    memory.gathered = gathered_memory(sent_bytes(states, train), states, place, train);
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
  const Bytes waiting{passes * activations.offloaded};
  sum_.host_activations += waiting;
  sum_.host += states.host + states.host_reference + waiting;
  sum_.logits += Bytes{activations.logits};
  sum_.context = std::max(sum_.context, Bytes{activations.context});
  kept_ += Bytes{states.gathered.kept};
  other_row_ = std::max(other_row_, std::min(row_, states.row));
  row_ = std::max(row_, states.row);
  unit_ = std::max(unit_, states.unit);
  embedding_ += states.embedding;
  layer_ = std::max(layer_, Bytes{activations.at_work});
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
  // So are they when a gradient is added to its sum.
  const double layer = activations.at_work + activations.new_gradient;
  new_gradient_ = std::max(new_gradient_, Bytes{std::max(0.0, layer - activations.logits) - again});
}

// What gradients take that are not there when a backward pass begins. Activations and logits leave as it goes on, and a step has its most at
// one of four moments: before the first gradient; when logits have given theirs to the output; when the first layer is at work once more, and
// all but the embedding's are there; when the last gradient is made.
Bytes StageMemory::beyond_activations(const TrainSettings& train, const TrainMemory& all) const {
  const Bytes at_start = all.logits + all.at_work;
  const Bytes output = std::max(Bytes{0}, std::min(unit_, all.gradients) - at_start);
  if (train.gradient_buffers == GradientBuffers::freed) return output;
  const Bytes at_the_end = std::max(all.gradients, all.gradients - embedding_ + layer_);
  return std::max(output, at_the_end - all.activations - at_start);
}

TrainMemory StageMemory::sum(const TrainSettings& train, double passes) const {
  TrainMemory all = sum_;
  all.gathered += kept_;
  // Sums over several micro-batches are there from the second one on; what is made anew is added to nothing.
  const bool anew = train.gradient_buffers != GradientBuffers::kept && passes <= 1;
  if (anew) all.gradients = beyond_activations(train, all);
  // Gradients of one chunk travel while those of the next are summed up.
  all.gradients +=
      row_ + (train.overlap ? other_row_ : Bytes{0}) + (anew ? Bytes{0} : new_gradient_);
  return all;
}

}  // namespace engine

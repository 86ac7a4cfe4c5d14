#include "engine/training/train_scratch.h"

#include <utility>

namespace engine {
namespace {

// Without the settings that no kernel of a pass follows from; a new one counts until it is named here.
TrainSettings settings_of_passes(TrainSettings train) {
  const TrainSettings any;
  train.global_batch = any.global_batch;
  train.schedule = any.schedule;
  train.virtual_stages = any.virtual_stages;
  train.recompute = any.recompute;
  train.optimizer = any.optimizer;
  if (train.fused_gradients) train.gradients = any.gradients;
  train.master_weights = any.master_weights;
  train.moments = any.moments;
  train.zero = any.zero;
  train.overlap = any.overlap;
  train.reserved_memory = any.reserved_memory;
  train.tokens = any.tokens;
  train.recompute_layers = any.recompute_layers;
  train.zero_group = any.zero_group;
  train.offload_activations = any.offload_activations;
  train.link_jitter = any.link_jitter;
  train.deadline = any.deadline;
  train.scaling_law = any.scaling_law;
  train.loss = any.loss;
  train.tail_layers = any.tail_layers;
  train.early_stop = any.early_stop;
  train.order = any.order;
  train.reshard = any.reshard;
  train.loading = any.loading;
  train.first_stage_layers = any.first_stage_layers;
  train.last_stage_layers = any.last_stage_layers;
  train.prefetch = any.prefetch;
  train.root_unit = any.root_unit;
  return train;
}

}  // namespace

void KnownCalls::begin(const StepContext& context, const TrainSettings& train) {
  StepInputs inputs_of_passes(context);
  // Stages have layers of the same kinds, and replicas do not see one another in a pass.
  inputs_of_passes.shard.parallel.pp = inputs_of_passes.shard.parallel.dp = 1;
  TrainSettings settings = settings_of_passes(train);
  if (inputs_of_passes.recognisable() && inputs_of_passes == of_ && settings == trained_as_) return;
  of_ = std::move(inputs_of_passes);
  trained_as_ = settings;
  for (PassCalls& calls : calls_) calls.clear();
}

}  // namespace engine

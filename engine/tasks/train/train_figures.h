// Task `train`: the figures that only training has.
#pragma once

#include "engine/base/units.h"
#include "engine/figures.h"

namespace engine {

// Figures of one optimizer step, and of the run it is part of. Times of passes are of one device of the busiest pipeline stage.
struct TrainFigures {
  Seconds iteration_time{kNoValue};
  Seconds iteration_time_low{kNoValue};
  Seconds iteration_time_high{kNoValue};
  Seconds iteration_time_p50{kNoValue};
  Seconds iteration_time_p95{kNoValue};
  Seconds iteration_time_p99{kNoValue};
  Seconds forward_time{kNoValue};
  Seconds backward_time{kNoValue};
  Seconds recompute_time{kNoValue};
  Seconds optimizer_time{kNoValue};
  Seconds bubble_time{kNoValue};
  double bubble_share = kNoValue;
  Seconds replica_exposed_time{kNoValue};
  Seconds replica_hidden_time{kNoValue};
  Seconds tensor_exchange_time{kNoValue};
  Seconds context_exchange_time{kNoValue};
  Seconds context_hidden_time{kNoValue};
  Seconds expert_exchange_time{kNoValue};
  Seconds cast_time{kNoValue};
  double tokens_per_s = kNoValue;
  double tokens_per_s_per_device = kNoValue;
  double hardware_flops_utilization = kNoValue;
  Bytes peak_memory{kNoValue};
  Bytes gradient_memory{kNoValue};
  Bytes optimizer_memory{kNoValue};
  Bytes kept_activation_memory{kNoValue};
  Bytes logit_memory{kNoValue};
  Bytes gathered_memory{kNoValue};
  Bytes context_memory{kNoValue};
  double peak_stage = kNoValue;
  double trained_parameters = kNoValue;
  Joules iteration_energy{kNoValue};
  Seconds run_time{kNoValue};
  double run_price_usd = kNoValue;
  Joules run_energy{kNoValue};
  Bytes checkpoint_size{kNoValue};
  Seconds checkpoint_time{kNoValue};
  Seconds checkpoint_every{kNoValue};
  double run_failures = kNoValue;
  double training_goodput = kNoValue;
  Seconds offload_exposed_time{kNoValue};
  Seconds offload_hidden_time{kNoValue};
  Bytes host_memory{kNoValue};
  Seconds run_time_p95{kNoValue};
  double finish_probability = kNoValue;
  double run_tokens = kNoValue;
  double run_loss = kNoValue;
  Seconds rollout_time{kNoValue};
  Seconds scoring_time{kNoValue};
  Seconds update_time{kNoValue};
  Seconds weight_transfer_time{kNoValue};
  double update_steps = kNoValue;
  double rollout_tokens_per_s = kNoValue;
  double samples_per_s = kNoValue;
  Seconds loading_time{kNoValue};
  Bytes reference_memory{kNoValue};

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("iteration_time", self.iteration_time,
          "task train: time of one optimizer step over the global batch; with train.rollout of one "
          "iteration: samples, scores, update and transfer of weights");
    visit("iteration_time_low", self.iteration_time_low,
          "task train: lower end of the 90% interval of the time of one optimizer step");
    visit("iteration_time_high", self.iteration_time_high,
          "task train: upper end of the 90% interval of the time of one optimizer step");
    visit("iteration_time_p50", self.iteration_time_p50,
          "task train: with train.jitter, the time that half of all optimizer steps take at most");
    visit("iteration_time_p95", self.iteration_time_p95,
          "task train: with train.jitter, the time that 95% of all optimizer steps take at most");
    visit("iteration_time_p99", self.iteration_time_p99,
          "task train: with train.jitter, the time that 99% of all optimizer steps take at most");
    visit(
        "forward_time", self.forward_time,
        "task train: forward passes of all micro-batches on one device of the busiest stage, with "
        "what they wait for: the host, and weights that replicas share out (train.zero 3)");
    visit("backward_time", self.backward_time,
          "task train: backward passes of all micro-batches on one device of the busiest stage, "
          "with what is computed again and what they wait for, as in forward_time");
    visit("recompute_time", self.recompute_time,
          "task train: the part of backward_time in which activations are computed again");
    visit("optimizer_time", self.optimizer_time,
          "task train: the optimizer's update of the weights on one device");
    visit("bubble_time", self.bubble_time,
          "task train: time in which the busiest pipeline stage waits for others");
    visit("bubble_share", self.bubble_share,
          "task train: bubble_time as a share of the pipeline's time, from the first forward pass "
          "to the last backward pass");
    visit("replica_exposed_time", self.replica_exposed_time,
          "task train: time in which a step waits for gradients or weights of other replicas; with "
          "train.zero 2 and 3 those that travel with each pass are part of forward_time and "
          "backward_time");
    visit("replica_hidden_time", self.replica_hidden_time,
          "task train: traffic between replicas that passes beside other work");
    visit("tensor_exchange_time", self.tensor_exchange_time,
          "task train: time that one device of the busiest stage spends in collectives of tensor "
          "parallelism");
    visit("context_exchange_time", self.context_exchange_time,
          "task train: time in which one device of the busiest stage waits for keys, values or "
          "heads of devices that share its sequences");
    visit("context_hidden_time", self.context_hidden_time,
          "task train: exchange between devices that share sequences that passes beside attention");
    visit("expert_exchange_time", self.expert_exchange_time,
          "task train: time that one device of the busiest stage spends sending tokens to experts "
          "and back");
    visit("cast_time", self.cast_time,
          "task train: time that one device of the busiest stage spends turning numbers into or "
          "out of narrow formats");
    visit("tokens_per_s", self.tokens_per_s, "task train: tokens trained on a second, all devices");
    visit("tokens_per_s_per_device", self.tokens_per_s_per_device,
          "task train: tokens trained on a second, per device");
    visit(
        "hardware_flops_utilization", self.hardware_flops_utilization,
        "task train: arithmetic done, recomputation and the scores that attention's backward pass "
        "computes again included, over the devices' peak");
    visit("peak_memory", self.peak_memory,
          "task train: everything in memory where most is, on one device of that stage");
    visit(
        "gradient_memory", self.gradient_memory,
        "task train: gradients on the device whose memory is fullest; with train.gradient_buffers "
        "remade or freed, what they take beyond the memory that activations leave");
    visit("optimizer_memory", self.optimizer_memory,
          "task train: optimizer states and master weights on the device whose memory is fullest");
    visit("kept_activation_memory", self.kept_activation_memory,
          "task train: activations kept for backward passes on the device whose memory is fullest");
    visit("logit_memory", self.logit_memory,
          "task train: logits and their gradients on the device whose memory is fullest");
    visit("gathered_memory", self.gathered_memory,
          "task train: weights of other replicas gathered for the layer, embedding or output at "
          "work (zero 3), and its gradients that are not yet shared out (zero 2 and 3)");
    visit(
        "context_memory", self.context_memory,
        "task train: keys and values of devices that share a sequence, held for the layer at work");
    visit("peak_stage", self.peak_stage,
          "task train: pipeline stage whose memory is fullest, from 0");
    visit("trained_parameters", self.trained_parameters,
          "task train: parameters of the whole model that have gradients");
    visit(
        "iteration_energy", self.iteration_energy,
        "task train: energy that all devices draw in one optimizer step, each taken for one of the "
        "busiest stage; null: the device does not say what it draws");
    visit("run_time", self.run_time,
          "task train: time of train.tokens at this speed, with jitter and failures where they are "
          "stated");
    visit("run_price_usd", self.run_price_usd,
          "task train: rent of all devices for run_time, in dollars");
    visit("run_energy", self.run_energy, "task train: energy of all devices over run_time");
    visit(
        "checkpoint_size", self.checkpoint_size,
        "task train: size of a checkpoint: trained weights and optimizer states of the whole job");
    visit("checkpoint_time", self.checkpoint_time,
          "task train: time in which a checkpoint is written");
    visit("checkpoint_every", self.checkpoint_every,
          "task train: work between two checkpoints: train.checkpoint_interval, or the best one");
    visit("run_failures", self.run_failures, "task train: failures to expect in run_time");
    visit("training_goodput", self.training_goodput,
          "task train: share of run_time that is work which no failure undoes");
    visit("offload_exposed_time", self.offload_exposed_time,
          "task train: time in which one device of the busiest stage waits for activations on "
          "their way to or from the host (train.offload_activations)");
    visit("offload_hidden_time", self.offload_hidden_time,
          "task train: copies of activations to and from the host that pass beside other work");
    visit("host_memory", self.host_memory,
          "task train: the most that lies in the host's memory at once, for the device whose own "
          "memory is fullest: activations, optimizer states, models that only score, and what "
          "train.rollout.offload_states takes away while samples are made");
    visit(
        "run_time_p95", self.run_time_p95,
        "task train: time in which 95 of 100 such runs end, where train.jitter, "
        "train.link_jitter or train.device_mtbf make runs differ; below run_time, which is a mean, "
        "where hardly any run fails");
    visit("finish_probability", self.finish_probability,
          "task train: probability that the run ends within train.deadline, from jitter and "
          "failures alone");
    visit("run_tokens", self.run_tokens,
          "task train: tokens of the whole run: train.tokens, or those that train.loss takes");
    visit("run_loss", self.run_loss,
          "task train: loss after run_tokens by train.scaling_law, in nats per token of that law's "
          "data");
    visit("rollout_time", self.rollout_time,
          "task train with train.rollout: time from the first prompt to the last answer of one "
          "iteration");
    visit("scoring_time", self.scoring_time,
          "task train with train.rollout: forward passes over all samples besides the update");
    visit("update_time", self.update_time,
          "task train with train.rollout: all optimizer steps of one iteration");
    visit("weight_transfer_time", self.weight_transfer_time,
          "task train with train.rollout: new weights on their way to where samples are made, and "
          "states of training to the host and back");
    visit("update_steps", self.update_steps,
          "task train with train.rollout: optimizer steps of one iteration");
    visit("rollout_tokens_per_s", self.rollout_tokens_per_s,
          "task train with train.rollout: tokens of answers that are made in a second of "
          "rollout_time, all devices");
    visit("samples_per_s", self.samples_per_s,
          "task train with train.rollout: samples made and learned from, per second of "
          "iteration_time");
    visit("loading_time", self.loading_time,
          "task train: time in which a step waits for its sequences (train.loading)");
    visit("reference_memory", self.reference_memory,
          "task train with train.rollout: weights of models that only score, on the device whose "
          "memory is fullest");
  }
};

}  // namespace engine

// Task `train`: the figures that only training has.
#pragma once

#include "engine/base/units.h"
#include "engine/figures.h"

namespace engine {

// Of one optimizer step, and of the run it is part of. Times of passes are of one device of the busiest pipeline stage.
struct TrainFigures {
  Seconds iteration_time{kNoValue};
  Seconds forward_time{kNoValue};
  Seconds backward_time{kNoValue};
  Seconds recompute_time{kNoValue};
  Seconds optimizer_time{kNoValue};
  Seconds bubble_time{kNoValue};
  double bubble_share = kNoValue;
  Seconds replica_exposed_time{kNoValue};
  Seconds replica_hidden_time{kNoValue};
  double tokens_per_s = kNoValue;
  double tokens_per_s_per_device = kNoValue;
  double hardware_flops_utilization = kNoValue;
  Bytes peak_memory{kNoValue};
  Bytes gradient_memory{kNoValue};
  Bytes optimizer_memory{kNoValue};
  Bytes kept_activation_memory{kNoValue};
  Bytes logit_memory{kNoValue};
  Bytes gathered_memory{kNoValue};
  double peak_stage = kNoValue;
  Seconds run_time{kNoValue};
  double run_price_usd = kNoValue;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("iteration_time", self.iteration_time,
          "task train: time of one optimizer step over the global batch");
    visit("forward_time", self.forward_time,
          "task train: forward passes of all micro-batches on one device of the busiest stage");
    visit("backward_time", self.backward_time,
          "task train: backward passes of all micro-batches on one device of the busiest stage, "
          "with what is computed again");
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
          "task train: time in which a step waits for gradients or weights of other replicas");
    visit("replica_hidden_time", self.replica_hidden_time,
          "task train: traffic between replicas that passes beside other work");
    visit("tokens_per_s", self.tokens_per_s, "task train: tokens trained on a second, all devices");
    visit("tokens_per_s_per_device", self.tokens_per_s_per_device,
          "task train: tokens trained on a second, per device");
    visit("hardware_flops_utilization", self.hardware_flops_utilization,
          "task train: arithmetic done, recomputation included, over the devices' peak");
    visit("peak_memory", self.peak_memory,
          "task train: everything in memory where most is, on one device of that stage");
    visit("gradient_memory", self.gradient_memory,
          "task train: gradients on the device whose memory is fullest");
    visit("optimizer_memory", self.optimizer_memory,
          "task train: optimizer states and master weights on the device whose memory is fullest");
    visit("kept_activation_memory", self.kept_activation_memory,
          "task train: activations kept for backward passes on the device whose memory is fullest");
    visit("logit_memory", self.logit_memory,
          "task train: logits and their gradients on the device whose memory is fullest");
    visit("gathered_memory", self.gathered_memory,
          "task train: weights of other replicas gathered for the layer at work (zero 3)");
    visit("peak_stage", self.peak_stage,
          "task train: pipeline stage whose memory is fullest, from 0");
    visit("run_time", self.run_time, "task train: time of train.tokens at this speed");
    visit("run_price_usd", self.run_price_usd,
          "task train: rent of all devices for run_time, in dollars");
  }
};

}  // namespace engine

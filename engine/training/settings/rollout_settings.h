// Reinforcement learning: how samples are made, scored and learned from.
#pragma once

#include <cstdint>

#include "engine/base/fields.h"
#include "engine/workload/load.h"

namespace engine {

struct RolloutSettings {
  std::int64_t prompts = 0;
  std::int64_t samples = 8;
  Lengths lengths{.prompt = 512, .output = 1024};
  double scoring_passes = 1;
  double reference_models = 1;
  std::int64_t epochs = 1;
  bool colocated = true;
  bool asynchronous = false;
  bool offload_states = true;

  bool any() const { return prompts > 0; }

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("prompts", self.prompts,
          "prompts of one iteration, which the model answers before it is trained on the answers; "
          "0: it is trained on given tokens",
          non_negative);
    visit("samples", self.samples, "answers to each prompt", at_least(1));
    visit("lengths", self.lengths, "tokens of prompts and answers", any_value);
    visit(
        "scoring_passes", self.scoring_passes,
        "forward passes over all samples besides the update, in the layout of training: reference "
        "model, old policy, reward model; one of a smaller model counts as its share of the "
        "parameters",
        non_negative);
    visit(
        "reference_models", self.reference_models,
        "models besides the trained one whose weights scoring_passes need (reference, reward), in "
        "sizes of the trained one; they lie beside it, or in the host's memory (offload_states)",
        non_negative.where(is_above<"train.rollout.scoring_passes", 0>));
    visit("epochs", self.epochs, "times that an update goes over all samples", at_least(1));
    visit("colocated", self.colocated,
          "samples are made on the devices that train, in the layout of the deployment rollout; "
          "false: that deployment has devices of its own",
          any_value);
    visit("asynchronous", self.asynchronous,
          "the next samples are made while the model is trained on these, one update behind",
          any_value);
    visit("offload_states", self.offload_states,
          "colocated: weights and optimizer states of training lie in the host's memory while "
          "samples are made; false: they stay, and the KV cache has what they leave",
          any_value.where(is_set<"train.rollout.colocated">));
  }

  bool operator==(const RolloutSettings&) const = default;
};

}  // namespace engine

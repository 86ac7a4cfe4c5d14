// Where settings of training count, for engine/training/settings/train_settings.h.
#pragma once

#include "engine/base/counts.h"
#include "engine/hardware/dtype.h"
#include "engine/training/settings/train_choices.h"

namespace engine {

inline constexpr const Condition& with_samples = is_above<"train.rollout.prompts", 0>;
inline constexpr const Condition& without_samples =
    said<"samples are not made by the model itself", is_zero<"train.rollout.prompts">>;
inline constexpr const Condition& with_stages =
    either<"parallel.pp is above 1 or tail is present", is_above<"parallel.pp", 1>,
           is_set<"tail.present">>;
inline constexpr const Condition& with_exchanges =
    either<"parallel.tp, dp, cp or ep is above 1", is_above<"parallel.tp", 1>,
           is_above<"parallel.dp", 1>, is_above<"parallel.cp", 1>, is_above<"parallel.ep", 1>>;
inline constexpr const Condition& with_overlap = either<
    "parallel.dp or parallel.cp is above 1, or train.offload_optimizer or "
    "train.offload_activations is true",
    is_above<"parallel.dp", 1>, is_above<"parallel.cp", 1>, is_set<"train.offload_optimizer">,
    is_set<"train.offload_activations">>;
inline constexpr const Condition& with_equal_replicas =
    either<"parallel.dp or parallel.cp is above 1, or train.schedule is dualpipe",
           is_above<"parallel.dp", 1>, is_above<"parallel.cp", 1>,
           is_one_of<"train.schedule", Schedule::dualpipe>>;
inline constexpr const Condition& with_tensor_ways = is_above<"parallel.tp", 1>;
inline constexpr const Condition& with_expert_ways = is_above<"parallel.ep", 1>;
inline constexpr const Condition& with_shared_weights =
    said<"train.zero is 3", is_above<"train.zero", 2>>;
inline constexpr const Condition& with_recomputed_layers =
    is_one_of<"train.recompute", Recompute::full>;
inline constexpr const Condition& with_adapters_trained = is_such<"train.method", has_adapters>;
inline constexpr const Condition& with_tail =
    said<"that deployment is present", is_set<"tail.present">>;
inline constexpr const Condition& with_planned_run =
    either<"train.tokens or train.loss say how long the run is", is_above<"train.tokens", 0>,
           is_above<"train.loss", 0>>;
inline constexpr const Condition& with_documents =
    either<"train.document_length or train.rollout.prompts is above 0",
           is_above<"train.document_length", 0>, with_samples>;
inline constexpr const Condition& with_failures = is_above<"train.device_mtbf", 0>;
inline constexpr const Condition& with_costly_experts =
    either<"host.launch_cost or host.kernel_gap is above 0, or experts are narrower than 16 bits",
           is_above<"host.launch_cost", 0>, is_above<"host.kernel_gap", 0>,
           is_one_of<"quant.activations", Dtype::fp8, Dtype::int8, Dtype::fp4>>;

}  // namespace engine

// Where settings of an engine count, for engine/serving/settings/serving_settings.h.
#pragma once

#include "engine/base/counts.h"
#include "engine/base/task.h"
#include "engine/model/model_spec.h"
#include "engine/model/parallelism.h"
#include "engine/serving/settings/attention_kernels.h"
#include "engine/serving/settings/policy_table.h"
#include "engine/workload/load.h"

namespace engine {

inline constexpr const Condition& with_messages = is_above<"serving.stream_interval", 1>;
inline constexpr const Condition& with_several_replicas =
    either<"serving.replicas or parallel.dp is above 1", is_above<"serving.replicas", 1>,
           is_above<"parallel.dp", 1>>;
inline constexpr const Condition& with_room_for_more =
    said<"serving.policy {}, which set room aside for whole answers",
         policy_lacks<&PolicyEntry::reserves>>;
inline constexpr const Condition& with_mixed_steps =
    said<"serving.policy {}, whose steps read prompts and decode", policy_has<&PolicyEntry::mixes>>;
inline constexpr const Condition& with_token_limit =
    either<"task is request, or serving.policy {}", policy_lacks<&PolicyEntry::counts_chunks>,
           task_has<&TaskTraits::plans_by_itself>>;
// Latent attention has kernels of its own.
inline constexpr const Condition& with_ordinary_attention =
    said<"the model has keys and values of its own (no latent attention, model.mla)",
         has<"model", joinable>>;
inline constexpr const Condition& with_old_attention_kernels = said<
    "the device has synchronous matrix instructions (device.architecture; Ampere, Ada, and "
    "Blackwell of workstations), for which FlashAttention has other kernels",
    holds<Fact::attention_kernels_differ>>;
inline constexpr const Condition& with_attention_habits =
    either<"serving.mixed_attention or serving.decode_parts is auto",
           is_one_of<"serving.mixed_attention", MixedAttention::automatic>,
           is_one_of<"serving.decode_parts", DecodeParts::automatic>>;
inline constexpr const Condition& with_traveling_tokens =
    said<"several replicas share experts (parallel.ep above parallel.tp)",
         has<"parallel", &Parallelism::replicas_share_experts>>;
inline constexpr const Condition& with_streams_left =
    either<"serving.two_batch_overlap is false, which hides exchanges behind them instead",
           is_zero<"serving.two_batch_overlap">,
           has<"parallel", &Parallelism::replicas_have_experts>>;
inline constexpr const Condition& with_blocks_of_values =
    said<"quant.activations is fp8 and quant.group 33 to 256, blocks of values",
         has<"quant", &Quantization::has_blocks>>;
inline constexpr const Condition& with_one_scale =
    said<"quant.activations is fp8 and quant.group above 256, one scale for a tensor or a token",
         has<"quant", &Quantization::has_one_scale>>;
inline constexpr const Condition& with_prompts_in_common = either<
    "prompts have something in common (load.turns or load.samples above 1, "
    "load.shared_prefix or load.trace)",
    is_above<"load.turns", 1>, is_above<"load.samples", 1>, is_above<"load.shared_prefix", 0>,
    is_set<"load.trace">>;
inline constexpr const Condition& with_levels =
    either<"load.priorities is above 1, or there are load.classes or load.trace",
           is_above<"load.priorities", 1>, is_set<"load.trace">,
           is_above<"load.classes.high.share", 0>, is_above<"load.classes.low.share", 0>>;
inline constexpr const Condition& with_tenants =
    either<"load.tenants is above 1, or load.arrivals is trace", is_above<"load.tenants", 1>,
           is_one_of<"load.arrivals", ArrivalKind::trace>>;
inline constexpr const Condition& with_adapters =
    either<"load.adapters (task step: step.adapters) is above 0", is_above<"load.adapters", 0>,
           is_above<"step.adapters", 0>>;

}  // namespace engine

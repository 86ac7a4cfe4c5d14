// How an inference engine is set up: the knobs an operator turns.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/deployment_role.h"
#include "engine/base/enum_names.h"
#include "engine/base/fields.h"
#include "engine/base/task.h"
#include "engine/base/units.h"
#include "engine/memory/footprint.h"
#include "engine/model/all_reduce.h"
#include "engine/model/context_sharing.h"
#include "engine/model/expert_travel.h"
#include "engine/model/four_bit_experts.h"
#include "engine/model/model_parts.h"
#include "engine/model/narrow_outputs.h"
#include "engine/model/sampling.h"
#include "engine/model/shared_experts.h"
#include "engine/serving/settings/admission_settings.h"
#include "engine/serving/settings/attention_kernels.h"
#include "engine/serving/settings/clock_settings.h"
#include "engine/serving/settings/failure_settings.h"
#include "engine/serving/settings/kv_tier_settings.h"
#include "engine/serving/settings/lora_settings.h"
#include "engine/serving/settings/policy_table.h"
#include "engine/serving/settings/retention_settings.h"
#include "engine/serving/settings/router_table.h"
#include "engine/serving/settings/scaling_settings.h"
#include "engine/serving/settings/serving_choices.h"
#include "engine/serving/settings/serving_conditions.h"
#include "engine/serving/settings/transfer_settings.h"
#include "engine/workload/load.h"
#include "engine/workload/ordering.h"

namespace engine {

struct ServingSettings {
  static constexpr std::string_view library = "serving";

  std::string name = "default";
  std::string vendor;
  PolicyName policy = policy_named("vllm_v1");
  Ordering ordering = Ordering::fcfs;
  std::int64_t max_num_batched_tokens = 8192;
  std::int64_t max_num_seqs = 256;
  std::int64_t chunk = 512;
  std::int64_t long_prefill_threshold = 0;
  std::int64_t block_size = 16;
  std::int64_t kv_blocks = 0;
  double watermark = 0;
  bool prefix_caching = false;
  double new_token_ratio = 0.7;
  std::int64_t max_output = 0;
  std::int64_t stream_interval = 1;
  FirstMessage first_message = FirstMessage::at_once;
  std::int64_t receive_interval = 1;
  std::int64_t batch_wait = 0;
  double batch_wait_share = 1;
  std::int64_t replicas = 1;
  RouterName router = router_named("round_robin");
  double memory_utilization = 0.9;
  MemoryShare memory_share = MemoryShare::whole;
  Bytes reserved_memory{0.15e9};
  Bytes logit_memory{14};
  std::string kernels;
  Sampling sampling = Sampling::greedy;
  AttentionKernels attention = AttentionKernels::planned;
  MixedAttention mixed_attention = MixedAttention::automatic;
  DecodeParts decode_parts = DecodeParts::automatic;
  AllReduce all_reduce = AllReduce::custom;
  FourBitExperts four_bit_experts = FourBitExperts::own;
  SharedExperts shared_experts = SharedExperts::after;
  NarrowOutputs narrow_outputs = NarrowOutputs::none;
  ExpertTravel expert_exchange = ExpertTravel::automatic;
  bool narrow_exchange = true;
  bool two_batch_overlap = false;
  ContextExchange context = ContextExchange::ring;
  bool stepping = false;
  Preemption preemption = Preemption::as_policy;
  double prediction_error = 0;
  bool encodes_images = false;
  bool pushes_kv = false;
  bool remakes_first_token = false;
  std::int64_t reserved_decode_tokens = 0;
  bool preempted_to_host = false;
  ScalingSettings scaling;
  KvTierSettings tiers;
  FailureSettings failures;
  AdmissionSettings admission;
  RetentionSettings retention;
  LoraSettings lora;
  ClockSettings clock;

  // Whether less urgent sequences make way for more urgent ones. Only a queue ordered by urgency knows which these are.
  bool makes_way() const {
    return preemption == Preemption::priority && ordering == Ordering::priority;
  }
  // Most tokens of a step, but for decodes beyond them.
  std::int64_t step_budget() const {
    return policy_of(policy).budget == StepBudget::chunk ? chunk : max_num_batched_tokens;
  }
  // Most of them of one prompt.
  std::int64_t longest_piece() const {
    const bool limited = policy_of(policy).limits_pieces && long_prefill_threshold > 0;
    return limited ? long_prefill_threshold : step_budget();
  }

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name, "name of the engine settings", a_label);
    visit(
        "vendor", self.vendor,
        "maker of the devices that the engine runs on, as device.vendor; no figure depends on it; "
        "empty: any",
        a_label);
    visit("policy", self.policy, "which requests run in a step", any_value.where(while_serving));
    visit("ordering", self.ordering, "which request is first in the queue",
          any_value.where(while_serving)
              .same(Ordering::priority, Ordering::fcfs, with_levels)
              .same(Ordering::fair_share, Ordering::fcfs, with_tenants)
              .same(Ordering::longest_prefix, Ordering::fcfs, with_prompts_in_common)
              .same(Ordering::longest_prefix, Ordering::fcfs, with_prefix_caching));
    visit(
        "max_num_batched_tokens", self.max_num_batched_tokens,
        "most tokens in one step; auto: as vLLM's server sets it by itself, 8192 on devices of 70 "
        "GiB or more other than A100s, else 2048 (column token_limit)",
        non_negative_or("auto").where(while_answering).where(with_token_limit));
    visit("max_num_seqs", self.max_num_seqs,
          "most sequences in one step, in a pipeline of vLLM's policies in all steps under way, of "
          "sglang's in equal whole shares; auto: as vLLM's server sets it by itself, 1024 on "
          "devices of 70 GiB or more other than A100s, else 256 (column sequence_limit)",
          non_negative_or("auto").where(while_serving));
    visit(
        "chunk", self.chunk,
        "sarathi: most tokens in one step; sglang: most of one prefill step; auto: as SGLang sets "
        "it by itself, 2048 to 16384 by the device's memory, which replicas that share experts "
        "divide (column token_limit)",
        non_negative_or("auto")
            .where(while_serving)
            .where(policy_has<&PolicyEntry::counts_chunks>));
    visit("long_prefill_threshold", self.long_prefill_threshold,
          "vllm_v1: most tokens of one prompt in one step",
          non_negative_or("none")
              .where(while_serving)
              .where(policy_has<&PolicyEntry::limits_pieces>));
    visit("block_size", self.block_size, "tokens in one KV block",
          between(1, 1 << 20).where(while_serving));
    visit("kv_blocks", self.kv_blocks,
          "KV blocks of a replica; auto: as many as fit beside the model",
          non_negative_or("auto").where(while_serving));
    visit("watermark", self.watermark,
          "share of the blocks that admission leaves free while something runs",
          fraction.where(while_serving));
    visit("prefix_caching", self.prefix_caching,
          "KV of equal prefixes is kept and shared, and a preempted request finds what is left of "
          "its own",
          any_value.where(while_serving));
    visit("new_token_ratio", self.new_token_ratio,
          "sglang: share of the outputs still to come that admission leaves room for at first; it "
          "falls to 14% of that in 600 decode steps",
          fraction.where(while_serving)
              .where(where_tokens_are_generated)
              .where(policy_has<&PolicyEntry::foresees>));
    visit("max_output", self.max_output,
          "no_evict, static: output tokens a request is given room for; auto: its own",
          non_negative_or("auto")
              .where(while_serving)
              .where(policy_has<&PolicyEntry::bounds_answers>));
    visit("stream_interval", self.stream_interval,
          "tokens of an answer that leave the engine in one message (--stream-interval of vLLM and "
          "SGLang, stream_interval of TensorRT-LLM): fewer messages for the front end",
          between(1, 1 << 20).where(while_serving).where(where_tokens_are_generated));
    visit(
        "first_message", self.first_message,
        "with serving.stream_interval above 1, in one pool; at_once: the first token leaves alone; "
        "with_others: it waits until as many are there",
        any_value.where(while_serving).where(where_tokens_are_generated).where(with_messages));
    visit("receive_interval", self.receive_interval,
          "decode steps from one look for new requests to the next (SGLang: "
          "--scheduler-recv-interval). After a step with prompts, and where nothing decodes, the "
          "engine looks at once. Replicas in a pipeline, or that share experts, look at every step",
          between(1, 1 << 20).where(while_serving).where(where_tokens_are_generated));
    visit("batch_wait", self.batch_wait,
          "most steps that prompts wait for others while sequences decode (TensorRT-LLM: "
          "batch_wait_timeout_iters). Not in a pipeline, nor where replicas share experts",
          non_negative_or("none").where(while_serving).where(where_tokens_are_generated));
    visit("batch_wait_share", self.batch_wait_share,
          "with serving.batch_wait: share of a step's tokens at which prompts wait no longer "
          "(TensorRT-LLM: batch_wait_max_tokens_ratio)",
          fraction.where(while_serving)
              .where(where_tokens_are_generated)
              .where(is_above<"serving.batch_wait", 0>));
    visit("replicas", self.replicas, "copies of the whole layout behind one router",
          between(1, 1 << 20)
              .where(while_serving)
              .where(where_devices_are)
              .where(unless_colocated)
              .even_without(where_text_is));
    visit(
        "router", self.router,
        "which replica a request goes to; round_robin: the next one; least_outstanding: the one "
        "with fewest requests inside; least_tokens: fewest tokens of their prompts and answers; "
        "least_predicted: the same with answers known but for serving.prediction_error; "
        "power_of_two: of two that are drawn, the one with fewer requests; prefix_aware: the one "
        "with most of the prompt in its cache, of equal ones the idlest, unless it is far busier "
        "than another; sticky: one for each session, as long as it takes requests; adapter_affine: "
        "one for each adapter, unless it is far busier than another; by_class: some for each "
        "class, by the estimated time that its requests take",
        any_value.where(while_serving).where(unless_colocated).where(with_several_replicas));
    visit("memory_utilization", self.memory_utilization,
          "share of the device's memory the engine may fill; auto: 0.9, or where memory_share is "
          "model_and_kv what SGLang's buffers leave by themselves on this device and layout",
          Range{.low = 0, .high = 1, .word = "auto"}
              .where(unless_training)
              .even_without(where_text_is)
              .even_without(unless_convolving));
    visit("memory_share", self.memory_share,
          "what serving.memory_utilization is a share of: the whole memory, the rest that the "
          "model and its buffers leave, or the whole for weights and KV alone",
          any_value.where(unless_training)
              .even_without(where_text_is)
              .even_without(unless_convolving));
    visit("reserved_memory", self.reserved_memory,
          "memory outside tensors that counts against memory_utilization, besides communication "
          "buffers",
          non_negative.where(unless_training)
              .even_without(where_text_is)
              .even_without(unless_convolving));
    visit("logit_memory", self.logit_memory,
          "memory set aside for each logit of max_num_seqs sequences; sorting them takes 38 B",
          non_negative.where(while_serving));
    visit(
        "attention", self.attention,
        "attention kernels of the engine; planned: prompts and decodes apart, long contexts split "
        "into more parts; flash_attention: the same, but where matrix instructions are synchronous "
        "(A100, RTX) its second version, which joins them and splits all contexts alike",
        any_value.where(while_generating)
            .where(where_tokens_are_generated)
            .where(with_ordinary_attention)
            .where(with_old_attention_kernels)
            .where(with_attention_habits));
    visit("mixed_attention", self.mixed_attention,
          "steps with prompts and decodes: one attention kernel (joined), two of which one runs "
          "after the other (separate), or both at once (overlapped); auto: as serving.attention "
          "has it",
          any_value.where(while_serving)
              .where(where_tokens_are_generated)
              .where(with_ordinary_attention)
              .where(with_mixed_steps));
    visit(
        "decode_parts", self.decode_parts,
        "decode attention: long contexts are split into more parts than short ones (by_length), or "
        "into as many (even); auto: as serving.attention has it",
        any_value.where(while_generating)
            .where(where_tokens_are_generated)
            .where(with_ordinary_attention));
    visit("all_reduce", self.all_reduce,
          "all-reduce among the devices of a node; custom: kernels of the engine's own for small "
          "messages, which need direct links; one_shot: of these only the one in which every "
          "device reads all inputs, and which around experts normalises, too (TensorRT-LLM); nccl: "
          "always the general library",
          any_value.where(unless_training)
              .where(is_above<"parallel.tp", 1>)
              .even_without(where_text_is));
    visit(
        "four_bit_experts", self.four_bit_experts,
        "kernels of experts that have four-bit floating-point weights and 16-bit inputs; own: the "
        "engine's for that format; marlin: Marlin's, which expands such weights as it does "
        "integers, in whole tiles (vLLM: VLLM_MXFP4_USE_MARLIN=1)",
        any_value.where(unless_training)
            .where(with_experts)
            .where(is_one_of<"quant.weights", Dtype::fp4>));
    visit("shared_experts", self.shared_experts,
          "experts that every token goes through, in steps of fewer than 256 tokens; after: one "
          "after the other with those that tokens choose; beside: in a stream of their own, where "
          "they take what memory and arithmetic need and no time to start",
          any_value.where(unless_training).where(with_shared_experts).where(with_streams_left));
    visit("expert_exchange", self.expert_exchange,
          "experts shared by several replicas: how tokens get there; low_latency, normal: DeepEP's "
          "kernels for few and for many tokens; gathered: all devices get all tokens, and sums are "
          "scattered back, as engines do unless they are told otherwise; auto: the faster of "
          "low_latency and normal; switched: as auto where one switch joins the devices (NVLink of "
          "a node or a rack), else gathered",
          any_value.where(unless_training).where(with_traveling_tokens));
    visit(
        "narrow_exchange", self.narrow_exchange,
        "DeepEP's kernels and experts in fp8 with a scale for a block of values: inputs travel in "
        "fp8; false: in 16 bits, and blocks are made where they arrive, as when they are gathered",
        any_value.where(unless_training)
            .where(with_traveling_tokens)
            .where(is_none_of<"serving.expert_exchange", ExpertTravel::gathered>)
            .where(with_blocks_of_values));
    visit("narrow_outputs", self.narrow_outputs,
          "fp8 with one scale for a tensor or a token: whose results come out of their kernels in "
          "fp8. none: a kernel of its own makes each input of a product narrow; activations, of "
          "MLPs; all: attention's, too",
          any_value.where(unless_training).where(with_one_scale));
    visit("two_batch_overlap", self.two_batch_overlap,
          "experts shared by several replicas: a step's tokens are two halves, and one computes "
          "while the other's experts exchange (SGLang: --enable-two-batch-overlap, vLLM: "
          "--enable-dbo)",
          any_value.where(unless_training).where(with_traveling_tokens));
    visit(
        "context", self.context,
        "how devices that read a prompt together (parallel.cp) get one another's keys and values: "
        "ring (beside attention), all_gather (before it), all_to_all (whole prompts of some heads)",
        any_value.where(unless_training)
            .where(where_prompts_are_split)
            .where(is_above<"parallel.cp", 1>));
    visit("kernels", self.kernels,
          "engine whose kernels run on a device that was not measured, as in calibration/engines; "
          "empty: well-made kernels of no engine",
          any_value.where(unless_training)
              .even_without(where_text_is)
              .even_without(unless_convolving));
    visit("sampling", self.sampling, "how tokens are chosen from the logits",
          any_value.where(while_generating)
              .where(role_has<&RoleTraits::chooses_tokens,
                              "the deployment generates tokens, which {} does not">));
    visit("stepping", self.stepping,
          "simulate every step on its own: the slow reference for the closed form",
          any_value.where(while_serving).where(where_tokens_are_generated));
    visit(
        "preemption", self.preemption,
        "which running requests make room for others; as_policy: those that the policy picks when "
        "blocks run out; priority: less urgent ones, when more urgent ones lack blocks or seats",
        any_value.where(while_serving).where(is_one_of<"serving.ordering", Ordering::priority>));
    visit("prediction_error", self.prediction_error,
          "least_predicted: standard deviation of the logarithm of a predicted output over the "
          "real one",
          between(0, 5)
              .where(while_serving)
              .where(where_tokens_are_generated)
              .where(router_has<&RouterEntry::predicts>));
    visit("encodes_images", self.encodes_images,
          "with load.images: replicas encode images of the prompts that they read themselves, and "
          "encode has no devices of its own",
          any_value.where(while_serving).where(with_load_images).where(with_encoder));
    visit(
        "pushes_kv", self.pushes_kv,
        "with prefill: blocks are set aside where the answer will be written before the prompt is "
        "read, and its KV cache is sent there (SGLang); false: it is fetched once the prompt has "
        "been read and there is room (vLLM, TensorRT-LLM)",
        any_value.where(while_serving)
            .where(where_tokens_are_generated)
            .where(where_readers_are)
            .where(with_reader)
            .where(is_one_of<"transfer.initiative", TransferInitiative::automatic>));
    visit("remakes_first_token", self.remakes_first_token,
          "with prefill: where a KV cache has come, the last token of its prompt is read once more "
          "for the first token of the answer, and the one that the reader made is dropped (vLLM); "
          "false: the reader's token comes with the KV cache (SGLang, TensorRT-LLM)",
          any_value.where(while_answering)
              .where(where_tokens_are_generated)
              .where(where_readers_are)
              .where(with_reader)
              .where(is_one_of<"transfer.first_token", FirstToken::automatic>));
    visit(
        "reserved_decode_tokens", self.reserved_decode_tokens,
        "with prefill: tokens that stay free for each sequence inside, and for the next one, when "
        "blocks are set aside for its KV cache (SGLang: --num-reserved-decode-tokens)",
        non_negative.where(while_serving)
            .where(where_tokens_are_generated)
            .where(where_readers_are)
            .where(with_reader)
            .where(with_room_for_more));
    visit("preempted_to_host", self.preempted_to_host,
          "with prefill: the KV cache of a preempted request waits in the host's memory, and comes "
          "back before any other when there is room (SGLang); false: the request is read again",
          any_value.where(while_serving)
              .where(where_tokens_are_generated)
              .where(where_readers_are)
              .where(with_reader)
              .where(with_room_for_more));
    visit("scaling", self.scaling, "how the number of replicas follows the load",
          any_value.where(while_serving)
              .where(role_has<&RoleTraits::over_time,
                              "requests come and go; all samples come at once">));
    visit("tiers", self.tiers, "where KV caches of prefixes are kept besides the device",
          any_value.where(while_serving)
              .where(role_has<&RoleTraits::over_time,
                              "prefixes are asked for again; those of samples are there at once">)
              .where(with_prefix_caching)
              .where(with_prompts_in_common));
    visit("failures", self.failures, "how often replicas fail", any_value.where(while_serving));
    visit("admission", self.admission, "which requests are turned away",
          any_value.where(while_serving));
    visit("retention", self.retention, "which cached prefixes are given up",
          any_value.where(while_serving).where(with_prefix_caching));
    visit("lora", self.lora, "low-rank adapters on the model (load.adapters, step.adapters)",
          any_value.where(task_has<&TaskTraits::has_adapters>).where(with_adapters));
    visit(
        "clock", self.clock, "the clock that steps run at",
        any_value.where(while_serving).where(where_tokens_are_generated).where(where_devices_are));
  }
};

}  // namespace engine

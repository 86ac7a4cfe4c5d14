// How a model is trained: batch, pipeline schedule, recomputation, optimizer and what is shared out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/fields.h"
#include "engine/base/units.h"
#include "engine/model/context_sharing.h"
#include "engine/model/lora_targets.h"
#include "engine/model/model_parts.h"
#include "engine/model/parallelism.h"
#include "engine/training/settings/loading_settings.h"
#include "engine/training/settings/rollout_settings.h"
#include "engine/training/settings/train_choices.h"
#include "engine/training/settings/train_conditions.h"

namespace engine {

struct TrainSettings {
  static constexpr std::string_view library = "training";

  std::string name = "default";
  std::int64_t sequence = 4096;
  std::int64_t micro_batch = 1;
  std::int64_t global_batch = 512;
  Schedule schedule = Schedule::one_f_one_b;
  std::int64_t virtual_stages = 1;
  Recompute recompute = Recompute::none;
  Optimizer optimizer = Optimizer::adamw;
  StateFormat gradients = StateFormat::fp32;
  StateFormat master_weights = StateFormat::fp32;
  StateFormat moments = StateFormat::fp32;
  std::int64_t zero = 0;
  bool sequence_parallel = false;
  bool tp_overlap = false;
  bool overlap = true;
  bool fused = true;
  bool fused_loss = true;
  Bytes reserved_memory{2e9};
  double tokens = 0;
  ContextExchange context = ContextExchange::ring;
  std::int64_t document_length = 0;
  double document_cv = 0;
  Method method = Method::full;
  std::int64_t lora_rank = 16;
  LoraTargets lora_targets = LoraTargets::all;
  std::int64_t trained_layers = 1;
  bool offload_optimizer = false;
  BytesPerSecond host_memory_bandwidth{50e9};
  double jitter = 0;
  Seconds device_mtbf;
  BytesPerSecond checkpoint_bandwidth{100e9};
  Seconds checkpoint_interval;
  Seconds restart_time{600};
  std::int64_t recompute_layers = 1;
  std::int64_t zero_group = 0;
  bool offload_activations = false;
  bool expert_overlap = false;
  double link_jitter = 0;
  Seconds deadline;
  ScalingLaw scaling_law = ScalingLaw::none;
  double loss = 0;
  RolloutSettings rollout;
  Dispatcher dispatcher = Dispatcher::deepep;
  bool narrow_dispatch = false;
  bool batch_overlap = false;
  AttentionGeneration attention_kernel = AttentionGeneration::best;
  std::int64_t tail_layers = 0;
  bool early_stop = false;
  ExpertProducts expert_products = ExpertProducts::grouped;
  bool fused_experts = true;
  DeviceOrder order = DeviceOrder::replicas_inside;
  double routing_skew = 0;
  bool fused_gradients = true;
  bool reshard = true;
  std::int64_t collective_multiprocessors = 16;
  bool padded_experts = false;
  bool joined_adapters = true;
  bool fused_rotation = true;
  bool blocking_sends = true;
  LoadingSettings loading;
  std::int64_t first_stage_layers = 0;
  std::int64_t last_stage_layers = 0;
  std::int64_t prefetch = 1;
  bool root_unit = false;
  bool transpose_cache = true;
  bool narrow_parameters = false;
  bool cuda_graphs = false;
  bool narrow_activation_inputs = false;
  bool norms_from_outputs = false;
  std::int64_t recompute_first = 0;
  std::int64_t offload_layers = 0;
  GradientBuffers gradient_buffers = GradientBuffers::kept;
  GatheredUnit gathered_unit = GatheredUnit::layer;
  double memory_utilization = 1;

  bool has_adapters() const { return engine::has_adapters(method); }

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name, "name of a training library's settings", a_label);
    visit("sequence", self.sequence, "tokens of one sequence", at_least(1));
    visit("micro_batch", self.micro_batch, "sequences of one pass through the model, per replica",
          at_least(1));
    visit("global_batch", self.global_batch, "sequences of one optimizer step, all replicas",
          at_least(1));
    visit("schedule", self.schedule,
          "order of a pipeline's work: gpipe, 1f1b, interleaved (with virtual_stages; with 1 it is "
          "1f1b), zero_bubble, dualpipe (micro-batches enter at both ends, every stage has two "
          "chunks of layers, and every chunk two copies), dualpipe_v (one copy, chunks go down the "
          "stages and up again)",
          any_value.where(is_above<"parallel.pp", 1>)
              .same(Schedule::interleaved, Schedule::one_f_one_b,
                    is_above<"train.virtual_stages", 1>));
    visit("virtual_stages", self.virtual_stages,
          "chunks of layers on each pipeline stage; more than one needs schedule: interleaved",
          between(1, 1 << 10).where(with_stages));
    visit(
        "recompute", self.recompute,
        "what is computed again in the backward pass: nothing (none), attention, norms and "
        "activations (activations), these and what latent attention expands (up_projections), "
        "these and the MLPs of mixtures (experts; experts_and_attention), these, attention and the "
        "first products of dense MLPs (attention_and_gates), or whole layers (full)",
        any_value);
    visit("optimizer", self.optimizer, "the rule that turns gradients into weights", any_value);
    visit("gradients", self.gradients, "format in which gradients are summed and kept", any_value);
    visit("master_weights", self.master_weights,
          "the optimizer's own copy of the weights; none: it works on the weights themselves",
          any_value);
    visit("moments", self.moments,
          "format of what the optimizer remembers of past gradients (adamw, muon, sgd)",
          any_value.where(is_such<"train.optimizer", has_stated_moments>));
    visit(
        "zero", self.zero,
        "what data-parallel replicas share out: 0 nothing, 1 optimizer states, 2 gradients too, 3 "
        "weights too (FSDP)",
        between(0, 3).where(with_equal_replicas));
    visit("sequence_parallel", self.sequence_parallel,
          "norms and residuals are split over the tensor-parallel devices, by sequence",
          any_value.where(with_tensor_ways));
    visit("tp_overlap", self.tp_overlap,
          "gathers and scatters of sequence parallelism go on in pieces beside the product that "
          "follows or precedes them",
          any_value.where(with_tensor_ways).where(is_set<"train.sequence_parallel">));
    visit("overlap", self.overlap,
          "gradients and gathered weights travel while the device computes",
          any_value.where(with_overlap));
    visit(
        "fused", self.fused,
        "norms, rotations and activations are one kernel each, as compilers and training libraries "
        "make them; false: plain PyTorch, several kernels each",
        any_value);
    visit(
        "fused_loss", self.fused_loss,
        "the loss turns logits into their gradients in place; false: logits and gradients are kept "
        "in 16 and in 32 bits",
        any_value);
    visit("reserved_memory", self.reserved_memory,
          "memory outside tensors: context, communication buffers, fragments", non_negative);
    visit("tokens", self.tokens, "tokens of the whole run; 0: no run is planned",
          non_negative.where(said<"train.loss does not set it", is_zero<"train.loss">>));
    visit("context", self.context,
          "how devices that share a sequence (parallel.cp) get one another's keys and values: ring "
          "(beside attention), all_gather (before it), all_to_all (whole sequences of some heads)",
          any_value.where(is_above<"parallel.cp", 1>));
    visit("document_length", self.document_length,
          "mean tokens of the documents that are packed into one sequence and do not see one "
          "another; 0: a sequence is one document",
          non_negative);
    visit("document_cv", self.document_cv,
          "how unequal packed documents are: deviation of their length over its mean",
          non_negative.where(with_documents));
    visit("method", self.method,
          "what is trained: all weights (full), adapters beside frozen weights in the format of "
          "quant.weights (lora) or in 4 bits (qlora), or the last layers and the output "
          "(last_layers)",
          any_value);
    visit("lora_rank", self.lora_rank, "rank of each adapter",
          between(1, 1 << 14).where(with_adapters_trained));
    visit("lora_targets", self.lora_targets,
          "products that have adapters: those that make queries, keys and values (qkv), all of "
          "attention, those of the dense MLP, or all; routed experts have none",
          any_value.where(with_adapters_trained));
    visit("trained_layers", self.trained_layers, "layers, from the last one, that are trained",
          at_least(1).where(is_one_of<"train.method", Method::last_layers>));
    visit("offload_optimizer", self.offload_optimizer,
          "optimizer states lie in the host's memory, gradients leave for it as they are made, and "
          "its processors update the weights",
          any_value);
    visit("host_memory_bandwidth", self.host_memory_bandwidth,
          "bandwidth of the host's memory, the share of one device",
          positive.faster().where(is_set<"train.offload_optimizer">));
    visit("jitter", self.jitter,
          "standard deviation of the time that one device takes for a step, over its mean; all "
          "wait for the slowest",
          non_negative);
    visit("device_mtbf", self.device_mtbf,
          "mean time between failures of one device that stop the run; 0: nothing fails",
          non_negative);
    visit("checkpoint_bandwidth", self.checkpoint_bandwidth,
          "rate at which the whole job writes a checkpoint", positive.where(with_failures));
    visit(
        "checkpoint_interval", self.checkpoint_interval,
        "time from one checkpoint to the next; 0: the interval with which the run takes least time",
        non_negative.where(with_failures));
    visit("restart_time", self.restart_time,
          "time from a failure until the run goes on from its last checkpoint",
          non_negative.where(with_failures));
    visit("recompute_layers", self.recompute_layers,
          "recompute full: layers that are computed again together, from the input of their first "
          "one, which alone is kept",
          at_least(1).where(with_recomputed_layers));
    visit("zero_group", self.zero_group,
          "neighbouring replicas among which zero shares things out, each group with a whole copy "
          "(hybrid sharding, as within a node); 0: all replicas are one group",
          non_negative.where(is_above<"train.zero", 0>));
    visit("offload_activations", self.offload_activations,
          "activations wait for their backward pass in the host's memory; train.overlap: they are "
          "copied beside other layers' work",
          any_value);
    visit("expert_overlap", self.expert_overlap,
          "tokens travel to routed experts and back while the shared expert computes",
          any_value.where(with_expert_ways));
    visit("link_jitter", self.link_jitter,
          "standard deviation of the time that collectives take over the links of one device, over "
          "its mean; all wait for the slowest, as far as no work hides it",
          non_negative);
    visit("deadline", self.deadline,
          "time that the run may take: finish_probability says how likely it does; 0: none",
          non_negative.where(with_planned_run));
    visit("scaling_law", self.scaling_law,
          "published law by which a dense model's loss follows from its parameters and tokens: "
          "hoffmann_2022 (Chinchilla), besiroglu_2024 (its replication)",
          any_value.where(with_planned_run));
    visit("loss", self.loss,
          "loss that the run is to reach by scaling_law, which then says how many tokens that "
          "takes; 0: train.tokens are stated",
          non_negative);
    visit("rollout", self.rollout,
          "reinforcement learning: samples that the model makes, and is then trained on",
          any_value.where(with_samples));
    visit(
        "dispatcher", self.dispatcher,
        "how tokens get to routed experts on other devices: once to each node and device (deepep) "
        "or every copy by itself (alltoall)",
        any_value.where(with_expert_ways));
    visit("narrow_dispatch", self.narrow_dispatch,
          "tokens travel to routed experts in the format of matrix inputs (quant.activations); "
          "false: in 16 bits",
          any_value.where(with_expert_ways).where(with_narrow_inputs));
    visit("batch_overlap", self.batch_overlap,
          "each forward pass goes on beside a backward pass of another micro-batch, and tokens of "
          "one travel to routed experts and back while the device computes the other; passes that "
          "fill and empty a pipeline have none beside them",
          any_value.where(with_expert_ways));
    visit("attention_kernel", self.attention_kernel,
          "generation of attention's kernels: the GPU's best, FlashAttention 3, 2 or 1 (flash_3, "
          "flash_2, flash_1), or FlashAttention 1 written in Triton (triton)",
          any_value);
    visit("tail_layers", self.tail_layers,
          "layers on the stages of the deployment 'tail', all of them together; 0: all stages have "
          "equally many",
          non_negative.where(with_tail));
    visit(
        "early_stop", self.early_stop,
        "recompute full: layers are computed again up to the last input that gradients need, as "
        "PyTorch does, so the last product of an MLP is not; false: to their end, as Megatron does",
        any_value.where(with_recomputed_layers));
    visit("expert_products", self.expert_products,
          "products of the routed experts of a device: one kernel for all (grouped), or one for "
          "each (one_by_one), casts to narrow formats as well, which takes the host longer to "
          "launch",
          any_value.where(with_experts).where(with_costly_experts));
    visit("fused_experts", self.fused_experts,
          "bounds, gates and biases of routed experts are one kernel or part of the products; "
          "false: a kernel each, as where a library has none for a model's activation",
          any_value.where(with_experts));
    visit("order", self.order,
          "how degrees lie on devices, the one whose devices are neighbours first: tp_cp_dp_pp "
          "(sends between stages go farthest) or tp_cp_pp_dp (gradients do)",
          any_value.where(with_stages).where(is_above<"parallel.dp", 1>));
    visit("routing_skew", self.routing_skew,
          "exponent of the power law by which tokens choose experts while routers train; 0: all "
          "alike, as losses and biases for balance make them",
          non_negative.where(with_experts).where(with_expert_ways));
    visit("fused_gradients", self.fused_gradients,
          "products that make gradients of weights add them to those of earlier micro-batches, as "
          "Megatron's do; false: a pass of its own for each micro-batch does, as in PyTorch",
          any_value);
    visit("reshard", self.reshard,
          "zero 3: weights are dropped after a forward pass and gathered again for its backward "
          "pass; false: they stay until then (FSDP's reshard_after_forward, SHARD_GRAD_OP)",
          any_value.where(with_shared_weights));
    visit(
        "collective_multiprocessors", self.collective_multiprocessors,
        "multiprocessors that a collective takes from the work it runs beside (NCCL's channels: 16 "
        "between nodes by default)",
        between(0, 1 << 10).where(with_exchanges));
    visit("padded_experts", self.padded_experts,
          "in narrow formats the rows of each expert are copied to a multiple of 16 before its "
          "products, and back after them (Megatron without moe_router_padding_for_fp8)",
          any_value.where(with_experts).where(with_narrow_inputs));
    visit("joined_adapters", self.joined_adapters,
          "products that one kernel does together (queries, keys and values; gate and up) have one "
          "adapter, as in Megatron; false: each has its own, as in Hugging Face's PEFT",
          any_value.where(with_adapters_trained));
    visit("fused_rotation", self.fused_rotation,
          "queries and keys are rotated by one kernel each; false: by plain operations of PyTorch, "
          "as Megatron does where YaRN scales them (gpt-oss)",
          any_value.where(is_set<"train.fused">));
    visit("blocking_sends", self.blocking_sends,
          "schedules gpipe and 1f1b: a stage goes on once what it sends has arrived, as in "
          "Megatron; false: it sends beside its next pass",
          any_value.where(with_stages).where(is_such<"train.schedule", sends_between_passes>));
    visit("loading", self.loading, "how sequences get to the devices",
          any_value.where(without_samples));
    visit("first_stage_layers", self.first_stage_layers,
          "layers of the first pipeline stage, beside the embedding; 0: as many as others",
          non_negative.where(with_stages));
    visit("last_stage_layers", self.last_stage_layers,
          "layers of the last pipeline stage, beside the output; 0: as many as others",
          non_negative.where(with_stages));
    visit("prefetch", self.prefetch,
          "zero 3: layers that are gathered ahead of the one at work; 0: each is waited for",
          non_negative.where(with_shared_weights));
    visit("root_unit", self.root_unit,
          "zero 3: embedding and output are gathered together and kept to the end of the backward "
          "pass, as the root of plain FSDP is; false: each by itself",
          any_value.where(with_shared_weights));
    visit("transpose_cache", self.transpose_cache,
          "narrow weights are also kept transposed, as gradients of inputs need them; false: they "
          "are transposed in every backward pass (Megatron's disable_parameter_transpose_cache)",
          any_value.where(with_narrow_inputs));
    visit("narrow_parameters", self.narrow_parameters,
          "layers' weights are kept and gathered in the format of products, without a copy in 16 "
          "bits (Megatron's fp8_param_gather, torchao's float8 all-gather)",
          any_value.where(with_narrow_inputs).where(is_such<"train.method", changes_weights>));
    visit("cuda_graphs", self.cuda_graphs,
          "the host replays one graph for each layer of a pass instead of launching its kernels; "
          "routed experts, whose shapes follow from the router, are launched as without "
          "(Megatron's --enable-cuda-graph, --cuda-graph-scope attn)",
          any_value);
    visit("narrow_activation_inputs", self.narrow_activation_inputs,
          "inputs of activation functions are kept in fp8 for the backward pass (Megatron's "
          "activation_func_fp8_input_store)",
          any_value);
    visit("norms_from_outputs", self.norms_from_outputs,
          "a norm's backward pass starts from what it gave, which the product after it keeps in 16 "
          "bits, so its input is not kept (Apex's memory_efficient)",
          any_value);
    visit("recompute_first", self.recompute_first,
          "recompute full: layers of each chunk that are computed again, from its first one, and "
          "no others (Megatron's --recompute-method block); 0: all",
          non_negative.where(with_recomputed_layers));
    visit("offload_layers", self.offload_layers,
          "offload_activations: layers of each chunk whose activations wait in the host's memory "
          "(Megatron's cpu_offloading_num_layers); 0: all",
          non_negative.where(is_set<"train.offload_activations">));
    visit("gradient_buffers", self.gradient_buffers,
          "memory of gradients: it stays from step to step (kept), is freed by the update and "
          "taken again as backward passes make them (remade), or each gradient updates its weight "
          "at once and is freed (freed), which one micro-batch a step can do",
          any_value);
    visit("gathered_unit", self.gathered_unit,
          "zero 3: what is gathered and scattered in one call: a layer (FSDP) or a matrix (XLA)",
          any_value.where(with_shared_weights));
    visit("memory_utilization", self.memory_utilization,
          "share of the device's memory that training may fill, reserved_memory included "
          "(XLA_PYTHON_CLIENT_MEM_FRACTION, torch.cuda.set_per_process_memory_fraction)",
          Range{.low = 0, .high = 1});
  }

  bool operator==(const TrainSettings&) const = default;
};

}  // namespace engine

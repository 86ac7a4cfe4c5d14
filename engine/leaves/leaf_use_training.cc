// The rules of engine/leaves/leaf_use.h that are about training.
#include <string_view>

#include "engine/leaves/leaf_use_rules.h"
#include "engine/leaves/leaf_use_words.h"

namespace engine {

using namespace leaf_use_words;

std::vector<ValueUse> schedule_values() {
  return {{.path = "train.schedule",
           .value = "interleaved",
           .otherwise = "1f1b",
           .where = "train.virtual_stages is above 1",
           .any_of = {above("train.virtual_stages", 1)}}};
}

// How devices share a step.
std::vector<LeafUse> training_layout_uses() {
  return {
      {"train.schedule", "parallel.pp is above 1", {above("parallel.pp", 1)}},
      {"train.virtual_stages",
       "parallel.pp is above 1 or tail is present",
       {above("parallel.pp", 1), on("tail.present")}},
      {"train.blocking_sends",
       "parallel.pp is above 1 or tail is present",
       {above("parallel.pp", 1), on("tail.present")}},
      {"train.blocking_sends",
       "train.schedule is gpipe, 1f1b or interleaved",
       {is("train.schedule", {"gpipe", "1f1b", "interleaved"})}},
      {"train.overlap",
       "parallel.dp or parallel.cp is above 1, or train.offload_optimizer or "
       "train.offload_activations is true",
       {above("parallel.dp", 1), above("parallel.cp", 1), on("train.offload_optimizer"),
        on("train.offload_activations")}},
      {"train.order",
       "parallel.pp is above 1 or tail is present",
       {above("parallel.pp", 1), on("tail.present")}},
      {"train.order", "parallel.dp is above 1", {above("parallel.dp", 1)}},
      {"train.zero",
       "parallel.dp or parallel.cp is above 1, or train.schedule is dualpipe",
       {above("parallel.dp", 1), above("parallel.cp", 1), is("train.schedule", {"dualpipe"})}},
      {"train.zero_group", "train.zero is above 0", {above("train.zero", 0)}},
      {"train.reshard", "train.zero is 3", {above("train.zero", 2)}},
      {"train.prefetch", "train.zero is 3", {above("train.zero", 2)}},
      {"train.root_unit", "train.zero is 3", {above("train.zero", 2)}},
      {"train.gathered_unit", "train.zero is 3", {above("train.zero", 2)}},
      {"train.first_stage_layers",
       "parallel.pp is above 1 or tail is present",
       {above("parallel.pp", 1), on("tail.present")}},
      {"train.last_stage_layers",
       "parallel.pp is above 1 or tail is present",
       {above("parallel.pp", 1), on("tail.present")}},
      {"train.collective_multiprocessors",
       "parallel.tp, dp, cp or ep is above 1",
       {above("parallel.tp", 1), above("parallel.dp", 1), above("parallel.cp", 1),
        above("parallel.ep", 1)}},
      {"train.expert_overlap", "parallel.ep is above 1", {above("parallel.ep", 1)}},
      {"train.dispatcher", "parallel.ep is above 1", {above("parallel.ep", 1)}},
      {"train.narrow_dispatch", "parallel.ep is above 1", {above("parallel.ep", 1)}},
      {"train.narrow_dispatch",
       "quant.activations is narrower than 16 bits",
       {is("quant.activations", {"fp8", "int8", "int4", "fp4"})}},
      {"train.batch_overlap", "parallel.ep is above 1", {above("parallel.ep", 1)}},
      of_task("tail.present", "task is train", {"train"}),
      {"train.tail_layers", "that deployment is present", {on("tail.present")}},
      {"train.sequence_parallel", "parallel.tp is above 1", {above("parallel.tp", 1)}},
      {"train.tp_overlap", "parallel.tp is above 1", {above("parallel.tp", 1)}},
      {"train.tp_overlap", "train.sequence_parallel is true", {on("train.sequence_parallel")}},
      {"train.context", "parallel.cp is above 1", {above("parallel.cp", 1)}},
  };
}

// What is trained, with what, for how long.
std::vector<LeafUse> training_uses() {
  std::vector<LeafUse> uses{
      {"train.recompute_layers", "train.recompute is full", {is("train.recompute", {"full"})}},
      {"train.early_stop", "train.recompute is full", {is("train.recompute", {"full"})}},
      {"train.recompute_first", "train.recompute is full", {is("train.recompute", {"full"})}},
      {"train.offload_layers",
       "train.offload_activations is true",
       {on("train.offload_activations")}},
      {"train.expert_products", "the model has experts", {above("model.moe.experts", 0)}},
      {"train.expert_products",
       "host.launch_cost or host.kernel_gap is above 0, or experts are narrower than 16 bits",
       {above("host.launch_cost", 0), above("host.kernel_gap", 0),
        is("quant.activations", {"fp8", "int8", "fp4"})}},
      {"train.routing_skew", "the model has experts", {above("model.moe.experts", 0)}},
      {"train.routing_skew", "parallel.ep is above 1", {above("parallel.ep", 1)}},
      {"model.moe.skew",
       "task is step, request or serve, or train.rollout.prompts is above 0 (routers that train: "
       "train.routing_skew)",
       {is("task", {"step", "request", "serve"}), above("train.rollout.prompts", 0)}},
      {"model.moe.drift",
       "task is step, request or serve, or train.rollout.prompts is above 0",
       {is("task", {"step", "request", "serve"}), above("train.rollout.prompts", 0)}},
      {"train.fused_experts", "the model has experts", {above("model.moe.experts", 0)}},
      {"train.transpose_cache",
       "quant.activations is narrower than 16 bits",
       {is("quant.activations", {"fp8", "int8", "int4", "fp4"})}},
      {"train.narrow_parameters",
       "quant.activations is narrower than 16 bits",
       {is("quant.activations", {"fp8", "int8", "int4", "fp4"})}},
      {"train.narrow_parameters",
       "train.method is full or last_layers",
       {is("train.method", {"full", "last_layers"})}},
      {"train.padded_experts", "the model has experts", {above("model.moe.experts", 0)}},
      {"train.padded_experts",
       "quant.activations is narrower than 16 bits",
       {is("quant.activations", {"fp8", "int8", "int4", "fp4"})}},
      {"train.deadline",
       "train.tokens or train.loss say how long the run is",
       {above("train.tokens", 0), above("train.loss", 0)}},
      {"train.tokens", "train.loss does not set it", {zero("train.loss")}},
      {"train.scaling_law",
       "train.tokens or train.loss say how long the run is",
       {above("train.tokens", 0), above("train.loss", 0)}},
      {"train.moments",
       "train.optimizer is adamw, muon or sgd",
       {is("train.optimizer", {"adamw", "muon", "sgd"})}},
      {"train.document_cv",
       "train.document_length or train.rollout.prompts is above 0",
       {above("train.document_length", 0), above("train.rollout.prompts", 0)}},
      {"train.lora_rank", "train.method is lora or qlora", {is("train.method", {"lora", "qlora"})}},
      {"train.lora_targets",
       "train.method is lora or qlora",
       {is("train.method", {"lora", "qlora"})}},
      {"train.joined_adapters",
       "train.method is lora or qlora",
       {is("train.method", {"lora", "qlora"})}},
      {"train.fused_rotation", "train.fused is true", {on("train.fused")}},
      {"train.loading",
       "samples are not made by the model itself",
       {zero("train.rollout.prompts")}},
      {"train.loading.workers",
       "train.loading.sequence_time is above 0",
       {above("train.loading.sequence_time", 0)}},
      {"train.trained_layers",
       "train.method is last_layers",
       {is("train.method", {"last_layers"})}},
      {"train.host_memory_bandwidth",
       "train.offload_optimizer is true",
       {on("train.offload_optimizer")}},
  };
  for (const std::string_view path :
       {"train.checkpoint_bandwidth", "train.checkpoint_interval", "train.restart_time"}) {
    uses.push_back({path, "train.device_mtbf is above 0", {above("train.device_mtbf", 0)}});
  }
  return uses;
}

// Samples to train on, and the deployment that makes them.
std::vector<LeafUse> rollout_uses() {
  std::vector<LeafUse> uses{
      of_task("rollout.present", "task is train", {"train"}),
      {"rollout", "train.rollout.prompts is above 0", {above("train.rollout.prompts", 0)}},
      {"rollout.parallel.cp", "the deployment reads prompts and nothing else", {}},
      {"rollout.serving.context", "the deployment reads prompts and nothing else", {}},
      {"rollout.serving.scaling", "requests come and go; all samples come at once", {}},
      {"rollout.serving.tiers",
       "prefixes are asked for again; those of samples are there at once",
       {}},
      {"rollout.host.request_latency", "clients wait for first tokens", {}},
      {"train.rollout.offload_states",
       "train.rollout.colocated is true",
       {on("train.rollout.colocated")}},
      {"train.rollout.reference_models",
       "train.rollout.scoring_passes is above 0",
       {above("train.rollout.scoring_passes", 0)}},
      {"train.rollout.lengths.correlation",
       "train.rollout.lengths.distribution is lognormal",
       {is("train.rollout.lengths.distribution", {"lognormal"})}},
      {"train.rollout.lengths.zipf_exponent",
       "train.rollout.lengths.distribution is zipf",
       {is("train.rollout.lengths.distribution", {"zipf"})}},
  };
  for (const std::string_view path :
       {"train.rollout.lengths.prompt_cv", "train.rollout.lengths.output_cv"}) {
    uses.push_back({path,
                    "train.rollout.lengths.distribution is uniform or lognormal",
                    {is("train.rollout.lengths.distribution", {"uniform", "lognormal"})}});
  }
  for (const std::string_view path :
       {"train.rollout.samples", "train.rollout.lengths", "train.rollout.scoring_passes",
        "train.rollout.epochs", "train.rollout.reference_models", "train.rollout.colocated",
        "train.rollout.asynchronous", "train.rollout.offload_states"}) {
    uses.push_back({path, "train.rollout.prompts is above 0", {above("train.rollout.prompts", 0)}});
  }
  for (const std::string_view path : {"rollout.device", "rollout.cluster",
                                      "rollout.serving.replicas", "rollout.serving.router"}) {
    uses.push_back({path, "train.rollout.colocated is false", {zero("train.rollout.colocated")}});
  }
  return uses;
}

}  // namespace engine

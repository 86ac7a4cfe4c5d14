// The rules of engine/leaves/leaf_use.h, by what they are about.
#include "engine/leaves/leaf_use_rules.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "engine/leaves/leaf_use_words.h"

namespace engine {
namespace {

using namespace leaf_use_words;

// What a step or a request on its own has no use for.
constexpr std::string_view kServedOnly[] = {
    "load",
    "slo",
    "capacity",
    "output",
    "host.request_latency",
    "serving.policy",
    "serving.ordering",
    "serving.max_num_seqs",
    "serving.chunk",
    "serving.long_prefill_threshold",
    "serving.block_size",
    "serving.kv_blocks",
    "serving.watermark",
    "serving.prefix_caching",
    "serving.new_token_ratio",
    "serving.max_output",
    "serving.stream_interval",
    "serving.first_message",
    "serving.receive_interval",
    "serving.batch_wait",
    "serving.batch_wait_share",
    "serving.replicas",
    "serving.router",
    "serving.logit_memory",
    "serving.mixed_attention",
    "serving.stepping",
    "serving.scaling",
    "serving.tiers",
    "serving.failures",
    "serving.admission",
    "serving.retention",
    "serving.preemption",
    "serving.prediction_error",
};

// Training has no KV cache, no inference engine, and nothing between steps.
constexpr std::string_view kNotInTraining[] = {
    "serving.memory_utilization",
    "serving.memory_share",
    "serving.reserved_memory",
    "serving.sampling",
    "serving.four_bit_experts",
    "serving.shared_experts",
    "serving.expert_exchange",
    "serving.narrow_exchange",
    "serving.narrow_outputs",
    "serving.two_batch_overlap",
    "serving.all_reduce",
    "serving.kernels",
    "serving.context",
    "serving.attention",
    "serving.decode_parts",
    "quant.kv",
    "quant.state",
    "host.mode",
    "host.eager_launch_cost",
    "host.largest_graph",
    "host.captured_sizes",
    "host.graph_sizes",
    "host.step_overhead",
    "host.step_per_sequence",
    "host.step_per_kv_token",
    "host.asynchronous",
    "host.low",
    "host.high",
};

std::vector<LeafUse> task_uses() {
  std::vector<LeafUse> uses{
      of_task("step", "task is step", {"step"}),
      of_task("request", "task is request", {"request"}),
      of_task("train", "task is train", {"train"}),
      of_task("device.power_spread", "task is train", {"train"}),
      of_task("serving.max_num_batched_tokens", "task is request or serve", {"request", "serve"}),
  };
  for (const std::string_view path : kServedOnly) uses.push_back(of_serving(path));
  for (const std::string_view path : {"seed", "replicate"}) {
    uses.push_back(of_task(path, "task is serve or train", {"serve", "train"}));
    uses.push_back({path,
                    "task is serve, or train with train.rollout.prompts",
                    {is("task", {"serve"}), above("train.rollout.prompts", 0)}});
  }
  uses.push_back(
      {"host.graph_launch",
       "task is not train, or train.cuda_graphs is true",
       {is("task", {"step", "request", "serve", "denoise", "classify"}), on("train.cuda_graphs")}});
  uses.push_back({"host.eager_launch_cost", "host.mode is eager", {is("host.mode", {"eager"})}});
  for (const std::string_view path : kNotInTraining) {
    uses.push_back(
        of_task(path, "task is not train", {"step", "request", "serve", "denoise", "classify"}));
  }
  return uses;
}

// States are kept by layers that scan.
std::vector<LeafUse> state_uses() {
  return {{"quant.state",
           "the model has scan layers (model.scan.state)",
           {above("model.scan.state", 0)}}};
}

// Fields of a task that another of its fields switches off.
std::vector<LeafUse> step_uses() {
  return {
      {"step.prompt", "step.phase is prefill", {is("step.phase", {"prefill"})}},
      {"step.cached", "step.phase is prefill", {is("step.phase", {"prefill"})}},
      {"step.context", "step.phase is decode", {is("step.phase", {"decode"})}},
      {"step.longest_context", "step.phase is decode", {is("step.phase", {"decode"})}},
  };
}

std::vector<LeafUse> arrival_uses() {
  const Names rated{"poisson", "gamma", "deterministic"};
  return {
      {"load.rate",
       "load.arrivals is poisson, gamma or deterministic",
       {is("load.arrivals", rated)}},
      {"load.rate",
       "no capacity.slo asks to search for the rate",
       {zero("capacity.slo")},
       LeafUse::Of::main},
      {"load.rate", "load.throughput_fraction does not set it", {zero("load.throughput_fraction")}},
      {"load.throughput_fraction",
       "load.arrivals is poisson, gamma or deterministic",
       {is("load.arrivals", rated)}},
      {"load.throughput_fraction",
       "no capacity.slo asks to search for the rate",
       {zero("capacity.slo")},
       LeafUse::Of::main},
      {"load.cv", "load.arrivals is gamma", {is("load.arrivals", {"gamma"})}},
      {"load.curve", "load.arrivals is curve", {is("load.arrivals", {"curve"})}},
      {"load.clients", "load.arrivals is closed", {is("load.arrivals", {"closed"})}},
      {"load.clients", "load.kv_fraction does not set it", {zero("load.kv_fraction")}},
      {"load.kv_fraction", "load.arrivals is closed", {is("load.arrivals", {"closed"})}},
      {"load.ramp", "load.arrivals is closed", {is("load.arrivals", {"closed"})}},
      {"load.measure",
       "load.arrivals is poisson, gamma, deterministic or closed",
       {is("load.arrivals", {"poisson", "gamma", "deterministic", "closed"})}},
      {"load.think_time",
       "load.arrivals is closed, or load.turns above 1",
       {is("load.arrivals", {"closed"}), above("load.turns", 1)}},
      {"load.trace_speed", "load.arrivals is trace", {is("load.arrivals", {"trace"})}},
  };
}

// Traces and curves are measured whole.
std::vector<ValueUse> measure_values() {
  return {{.path = "load.measure",
           .value = "steady",
           .otherwise = "whole",
           .where = "load.arrivals is poisson, gamma, deterministic or closed",
           .any_of = {is("load.arrivals", {"poisson", "gamma", "deterministic", "closed"})}}};
}

std::vector<LeafUse> request_uses() {
  const UseCondition drawn =
      is("load.arrivals", {"poisson", "gamma", "deterministic", "curve", "closed"});
  return {
      {"load.lengths", "load.arrivals is not trace", {drawn}},
      // A trace that is replayed has its own.
      {"load.priorities", "load.arrivals is not trace", {drawn}},
      {"load.tenants", "load.arrivals is not trace", {drawn}},
      {"load.tenant_skew", "load.arrivals is not trace", {drawn}},
      {"load.shared_prefix", "load.arrivals is not trace", {drawn}},
      {"load.prefix_groups", "load.arrivals is not trace", {drawn}},
      {"load.lengths.correlation",
       "load.lengths.distribution is lognormal",
       {is("load.lengths.distribution", {"lognormal"})}},
      {"load.lengths.zipf_exponent",
       "load.lengths.distribution is zipf",
       {is("load.lengths.distribution", {"zipf"})}},
      {"load.lengths.prompt_cv",
       "load.lengths.distribution is uniform or lognormal",
       {is("load.lengths.distribution", {"uniform", "lognormal"})}},
      {"load.lengths.output_cv",
       "load.lengths.distribution is uniform or lognormal",
       {is("load.lengths.distribution", {"uniform", "lognormal"})}},
      {"load.shared_prefix", "serving.prefix_caching is true", {on("serving.prefix_caching")}},
      {"load.branches", "load.turns is above 1", {above("load.turns", 1)}},
      {"load.prefix_groups", "serving.prefix_caching is true", {on("serving.prefix_caching")}},
      {"load.prefix_groups", "load.shared_prefix is above 0", {above("load.shared_prefix", 0)}},
      {"load.priorities",
       "serving.ordering is priority or slo, or output.requests is true",
       {is("serving.ordering", {"priority", "slo"}), on("output.requests")}},
      {"load.tenant_skew", "load.tenants is above 1", {above("load.tenants", 1)}},
  };
}

std::vector<LeafUse> serving_uses() {
  return {
      {"capacity.tolerance", "a limit of capacity.slo asks for a search", {set("capacity.slo")}},
      {"output.timeline_moments", "output.timeline is set", {set("output.timeline")}},
      {"serving.router",
       "serving.replicas or parallel.dp is above 1",
       {above("serving.replicas", 1), above("parallel.dp", 1)}},
      {"serving.all_reduce", "parallel.tp is above 1", {above("parallel.tp", 1)}},
      {"serving.narrow_outputs",
       "quant.activations is fp8 and quant.group above 256, one scale for a tensor or a token",
       {follows({"quant"},
                [](const Scenario&, const Deployment& on) {
                  return scaled_as_a_whole(on.quant.activations, on.quant.group);
                })}},
      {"serving.context", "parallel.cp is above 1", {above("parallel.cp", 1)}},
      {"serving.chunk",
       "serving.policy is sarathi or sglang",
       {is("serving.policy", {"sarathi", "sglang"})}},
      // Both count the tokens of a step by serving.chunk.
      {"serving.max_num_batched_tokens",
       "task is request, or serving.policy neither sarathi nor sglang",
       {is("task", {"request"}),
        is("serving.policy", {"vllm_v1", "vllm_v0", "orca", "no_evict", "static"})}},
      {"serving.new_token_ratio", "serving.policy is sglang", {is("serving.policy", {"sglang"})}},
      {"serving.max_output",
       "serving.policy is no_evict or static",
       {is("serving.policy", {"no_evict", "static"})}},
      {"serving.long_prefill_threshold",
       "serving.policy is vllm_v1",
       {is("serving.policy", {"vllm_v1"})}},
  };
}

// Replicas that come and go.
std::vector<LeafUse> replica_uses() {
  std::vector<LeafUse> uses{{"serving.scaling.schedule",
                             "serving.scaling.policy is scheduled",
                             {is("serving.scaling.policy", {"scheduled"})}}};
  uses.push_back({"serving.scaling.cold_start",
                  "serving.scaling.policy is reactive, predictive or scheduled",
                  {is("serving.scaling.policy", {"reactive", "predictive", "scheduled"})}});
  for (const std::string_view path : {"serving.scaling.interval", "serving.scaling.min_replicas",
                                      "serving.scaling.target", "serving.scaling.cooldown"}) {
    uses.push_back({path,
                    "serving.scaling.policy is reactive or predictive",
                    {is("serving.scaling.policy", {"reactive", "predictive"})}});
  }
  return uses;
}

// Replicas that fail, and requests that are turned away, put back or kept apart.
std::vector<LeafUse> fleet_uses() {
  std::vector<LeafUse> uses{
      {"serving.preemption",
       "serving.ordering is priority",
       {is("serving.ordering", {"priority"})}},
      {"serving.retention", "serving.prefix_caching is true", {on("serving.prefix_caching")}},
      {"serving.retention.ttl",
       "serving.retention.policy is ttl",
       {is("serving.retention.policy", {"ttl"})}},
      {"serving.prediction_error",
       "serving.router is least_predicted",
       {is("serving.router", {"least_predicted"})}},
  };
  uses.push_back({"serving.failures.mean_time_to_repair",
                  "serving.failures.mean_time_to_failure is above 0",
                  {above("serving.failures.mean_time_to_failure", 0)}});
  for (const std::string_view path : {"serving.failures.attempts", "serving.failures.answers"}) {
    uses.push_back({path,
                    "mean_time_to_failure of a deployment is above 0",
                    {above("serving.failures.mean_time_to_failure", 0),
                     above("prefill.serving.failures.mean_time_to_failure", 0)}});
  }
  for (const std::string_view path :
       {"load.classes.high.ttft", "load.classes.high.tpot", "load.classes.high.e2e",
        "load.classes.high.prompt", "load.classes.high.output", "load.classes.high.acceptance"}) {
    uses.push_back(
        {path, "load.classes.high.share is above 0", {above("load.classes.high.share", 0)}});
  }
  for (const std::string_view path :
       {"load.classes.high.acceptance", "load.classes.low.acceptance"}) {
    uses.push_back({path, "speculation.tokens is above 0", {above("speculation.tokens", 0)}});
    uses.push_back({path,
                    "speculation.method is not none",
                    {is("speculation.method", {"draft_model", "ngram", "heads", "mtp", "self"})}});
  }
  for (const std::string_view path :
       {"load.classes.low.ttft", "load.classes.low.tpot", "load.classes.low.e2e",
        "load.classes.low.prompt", "load.classes.low.output", "load.classes.low.acceptance"}) {
    uses.push_back(
        {path, "load.classes.low.share is above 0", {above("load.classes.low.share", 0)}});
  }
  return uses;
}

// Kept with a device for the day when something follows from them.
std::vector<LeafUse> unused() {
  return {
      {"device.purchase", "prices follow from purchases, which they do not yet", {}},
      {"device.shared_memory", "kernels' times follow from it, which they do not yet", {}},
  };
}

// What of an engine counts where it only encodes images.
constexpr std::string_view kOfEncoders[] = {
    "encode.serving.replicas",     "encode.serving.memory_utilization",
    "encode.serving.memory_share", "encode.serving.reserved_memory",
    "encode.serving.kernels",      "encode.serving.all_reduce",
};

// Deployments beside the main one. What a field of the main one needs, the same field of a role needs too
// (`why_inert`); here is what is their own.
std::vector<LeafUse> role_uses() {
  std::vector<LeafUse> uses{
      of_task("prefill.present", "task is request or serve", {"request", "serve"}),
      of_task("transfer", "task is request or serve", {"request", "serve"}),
      {"transfer", "there is a prefill deployment", {on("prefill.present")}},
      of_serving("transfer.local_prompt"),
      of_serving("serving.encodes_images"),
      of_serving("encode.present"),
      {"encode.present", "there are load.images", {above("load.images", 0)}},
      {"serving.encodes_images", "there are load.images", {above("load.images", 0)}},
      {"serving.encodes_images", "there is an encoder", {on("encode.present")}},
      {"load.image_tokens", "there are load.images", {above("load.images", 0)}},
      {"load.image_patches", "there are load.images", {above("load.images", 0)}},
      of_serving("transfer.oversubscription"),
      of_serving("transfer.initiative"),
      of_serving("transfer.contention"),
      {"load.image_batch", "there are load.images", {above("load.images", 0)}},
      {"load.image_batch", "there is an encoder", {on("encode.present")}},
  };
  for (const std::string_view path : {"prefill.host.graph_launch",
                                      "prefill.host.largest_graph",
                                      "prefill.host.graph_sizes",
                                      "prefill.serving.attention",
                                      "prefill.serving.decode_parts",
                                      "prefill.serving.mixed_attention",
                                      "prefill.serving.new_token_ratio",
                                      "prefill.serving.stepping",
                                      "prefill.serving.prediction_error",
                                      "prefill.serving.pushes_kv",
                                      "prefill.serving.remakes_first_token",
                                      "prefill.serving.reserved_decode_tokens",
                                      "prefill.serving.preempted_to_host",
                                      "prefill.serving.failures.attempts",
                                      "prefill.serving.failures.answers",
                                      "prefill.host.front_end_merges",
                                      "prefill.serving.stream_interval",
                                      "prefill.serving.first_message",
                                      "prefill.serving.receive_interval",
                                      "prefill.serving.batch_wait",
                                      "prefill.serving.batch_wait_share"}) {
    uses.push_back({path, "the deployment generates tokens, which one for prompts does not", {}});
  }
  uses.push_back({"prefill.host.mode",
                  "prefill.host.eager_launch_cost is above 0",
                  {above("prefill.host.eager_launch_cost", 0)}});
  uses.push_back({"prefill.host.request_latency",
                  "the deployment answers clients, which one for prompts does not",
                  {}});
  for (const std::string_view path :  // rate and latency are what counts
       {"transfer.link.topology", "transfer.link.devices", "transfer.link.in_network_reduction"}) {
    uses.push_back({path, "something is summed or shared over the link; KV is only carried", {}});
  }
  for (const Leaf& leaf : leaf_table().leaves) {
    if (leaf.presence < 0) continue;
    const Leaf& presence = leaf_table().leaves[std::size_t(leaf.presence)];
    if (presence.path == "prefill.present") {
      uses.push_back(of_task(leaf.path, "task is request or serve", {"request", "serve"}));
    }
    if (presence.path == "encode.present") {
      uses.push_back(of_serving(leaf.path));
      uses.push_back({leaf.path, "there are load.images", {above("load.images", 0)}});
      const bool served = leaf.path.starts_with("encode.serving.");
      if (served && std::ranges::find(kOfEncoders, leaf.path) == std::end(kOfEncoders)) {
        uses.push_back(
            {leaf.path, "the deployment reads or writes text, which encoders do not", {}});
      }
    }
    if (presence.path == "rollout.present" || presence.path == "tail.present") {
      uses.push_back(of_task(leaf.path, "task is train", {"train"}));
    }
    uses.push_back({leaf.path, "that deployment is present", {on(presence.path)}});
  }
  return uses;
}

}  // namespace

std::vector<LeafUse> leaf_use_rules() {
  std::vector<LeafUse> uses;
  for (const auto part :
       {task_uses,        state_uses,   role_uses,     link_uses,    expert_uses,
        speculation_uses, draft_uses,   unused,        step_uses,    arrival_uses,
        request_uses,     serving_uses, replica_uses,  fleet_uses,   training_layout_uses,
        attention_uses,   tier_uses,    training_uses, rollout_uses, neighbour_uses,
        adapter_uses,     clock_uses,   image_uses,    array_uses,   retrieval_uses,
        model_uses,       message_uses}) {
    for (LeafUse& use : part()) uses.push_back(std::move(use));
  }
  return uses;
}

std::vector<ValueUse> value_use_rules() {
  std::vector<ValueUse> uses = schedule_values();
  for (ValueUse& use : ordering_values()) uses.push_back(std::move(use));
  for (ValueUse& use : measure_values()) uses.push_back(std::move(use));
  return uses;
}

}  // namespace engine

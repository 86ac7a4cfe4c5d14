// Rules of engine/leaves/leaf_use.h about what an engine does with attention, prefixes and its queue.
#include "engine/engine_kernels.h"
#include "engine/leaves/leaf_use_rules.h"
#include "engine/leaves/leaf_use_words.h"
#include "engine/model/mixers/mixer.h"

namespace engine {
namespace {

using namespace leaf_use_words;

constexpr std::string_view kPromptsInCommon =
    "prompts have something in common (load.turns or load.samples above 1, load.shared_prefix or "
    "load.trace)";

std::vector<UseCondition> prompts_in_common() {
  return {above("load.turns", 1), above("load.samples", 1), above("load.shared_prefix", 0),
          set("load.trace")};
}

// Latent attention has kernels of its own.
LeafUse of_ordinary_attention(std::string_view path) {
  return {path,
          "the model has keys and values of its own (no latent attention, model.mla)",
          {follows({"model"},
                   [](const Scenario&, const Deployment& on) { return joinable(on.model); })}};
}

}  // namespace

std::vector<LeafUse> attention_uses() {
  return {
      of_ordinary_attention("serving.attention"),
      of_ordinary_attention("serving.mixed_attention"),
      of_ordinary_attention("serving.decode_parts"),
      {"serving.attention",
       "the device has synchronous matrix instructions (device.architecture; Ampere, Ada, and "
       "Blackwell of workstations), for which FlashAttention has other kernels",
       {follows({"device.architecture"},
                [](const Scenario&, const Deployment& on) {
                  return attention_kernels_differ(on.device);
                })}},
      {"serving.attention",
       "serving.mixed_attention or serving.decode_parts is auto",
       {is("serving.mixed_attention", {"auto"}), is("serving.decode_parts", {"auto"})}},
      {"serving.mixed_attention",
       "serving.policy is vllm_v1, sarathi, orca or no_evict, whose steps read prompts and decode",
       {is("serving.policy", {"vllm_v1", "sarathi", "orca", "no_evict"})}},
  };
}

// Memory below that of the devices.
std::vector<LeafUse> tier_uses() {
  std::vector<LeafUse> uses{
      {"serving.tiers", "serving.prefix_caching is true", {on("serving.prefix_caching")}},
      {"serving.tiers", kPromptsInCommon, prompts_in_common()},
      {"serving.tiers.host_bandwidth",
       "there is serving.tiers.host",
       {above("serving.tiers.host", 0)}},
      {"serving.tiers.pieces",
       "there is serving.tiers.host or serving.tiers.peer",
       {above("serving.tiers.host", 0), above("serving.tiers.peer", 0)}},
      {"serving.tiers.disk_bandwidth",
       "there is serving.tiers.disk",
       {above("serving.tiers.disk", 0)}},
      {"serving.tiers.disk_latency",
       "there is serving.tiers.disk",
       {above("serving.tiers.disk", 0)}},
      {"serving.tiers.peer_bandwidth",
       "there is serving.tiers.peer",
       {above("serving.tiers.peer", 0)}},
      {"serving.tiers.write",
       "there is a tier",
       {above("serving.tiers.peer", 0), above("serving.tiers.host", 0),
        above("serving.tiers.disk", 0), above("serving.tiers.store", 0)}}};
  for (const std::string_view path : {"serving.tiers.store_bandwidth", "serving.tiers.store_link",
                                      "serving.tiers.store_latency"}) {
    uses.push_back({path, "there is serving.tiers.store", {above("serving.tiers.store", 0)}});
  }
  return uses;
}

// Orders of a queue in which all are alike.
std::vector<ValueUse> ordering_values() {
  std::vector<UseCondition> levels{above("load.priorities", 1), set("load.trace")};
  for (const std::string_view share : {"load.classes.high.share", "load.classes.low.share"}) {
    levels.push_back(above(share, 0));
  }
  return {{.path = "serving.ordering",
           .value = "priority",
           .otherwise = "fcfs",
           .where = "load.priorities is above 1, or there are load.classes or load.trace",
           .any_of = levels},
          {.path = "serving.ordering",
           .value = "fair_share",
           .otherwise = "fcfs",
           .where = "load.tenants is above 1, or load.arrivals is trace",
           .any_of = {above("load.tenants", 1), is("load.arrivals", {"trace"})}},
          {.path = "serving.ordering",
           .value = "longest_prefix",
           .otherwise = "fcfs",
           .where = kPromptsInCommon,
           .any_of = prompts_in_common()},
          {.path = "serving.ordering",
           .value = "longest_prefix",
           .otherwise = "fcfs",
           .where = "serving.prefix_caching is true",
           .any_of = {on("serving.prefix_caching")}}};
}

}  // namespace engine

// The rules of engine/leaves/leaf_use.h that are about links between devices.
#include <string_view>

#include "engine/hardware/link.h"
#include "engine/leaves/leaf_use_rules.h"
#include "engine/leaves/leaf_use_words.h"
#include "engine/tasks/handover.h"

namespace engine {

using namespace leaf_use_words;

namespace {

// A link of a cluster is one where it has a topology, which library entries have; its device's fields are those to change otherwise.
constexpr std::string_view kOwnScaleUp =
    "cluster.scale_up.topology is not none (by default links are the device's: device.scale_up)";
constexpr std::string_view kOwnScaleOut =
    "cluster.scale_out.topology is not none (by default links are the device's: device.scale_out)";

}  // namespace

// Links between devices are the device's own, unless its cluster states some. A draft whose device differs in them lies on
// devices of its own.
std::vector<LeafUse> link_uses() {
  constexpr auto topologies = enum_names(Topology{});
  const Names links(topologies.begin() + 1, topologies.end());  // all but none
  return {
      {"cluster.scale_up.bandwidth", kOwnScaleUp, {is("cluster.scale_up.topology", links)}},
      {"cluster.scale_up.latency", kOwnScaleUp, {is("cluster.scale_up.topology", links)}},
      {"cluster.scale_up.devices", kOwnScaleUp, {is("cluster.scale_up.topology", links)}},
      {"cluster.scale_up.in_network_reduction",
       kOwnScaleUp,
       {is("cluster.scale_up.topology", links)}},
      {"cluster.scale_out.bandwidth", kOwnScaleOut, {is("cluster.scale_out.topology", links)}},
      {"cluster.scale_out.latency", kOwnScaleOut, {is("cluster.scale_out.topology", links)}},
      {"cluster.scale_out.devices", kOwnScaleOut, {is("cluster.scale_out.topology", links)}},
      {"cluster.scale_out.in_network_reduction",
       kOwnScaleOut,
       {is("cluster.scale_out.topology", links)}},
      {"device.scale_up",
       "cluster.scale_up.topology is none (this cluster has links of its own in cluster.scale_up)",
       {is("cluster.scale_up.topology", {"none"}), on("draft.present")}},
      {"device.scale_out",
       "cluster.scale_out.topology is none (this cluster has links of its own in "
       "cluster.scale_out)",
       {is("cluster.scale_out.topology", {"none"}), on("draft.present")}},
      {"transfer.rails",
       "KV caches leave a node over its adapters (transfer.link states no other link, and the two "
       "deployments do not share a node)",
       {follows(
           {"task", "device", "cluster", "parallel", "serving.replicas", "prefill",
            "transfer.link"},
           [](const Scenario& scenario, const Deployment&) { return leaves_a_node(scenario); })}},
      {"transfer.oversubscription",
       "KV caches leave a node or take transfer.link (the two deployments do not share a node)",
       {follows(
           {"task", "device", "cluster", "parallel", "serving.replicas", "prefill",
            "transfer.link"},
           [](const Scenario& scenario, const Deployment&) { return takes_a_fabric(scenario); })}},
      {"transfer.link.latency",
       "transfer.link has a bandwidth (else KV caches take the links of the deployments)",
       {above("transfer.link.bandwidth", 0)}},
      {"transfer.contention",
       "KV caches share adapters with collectives (transfer.link states no link of their own)",
       {zero("transfer.link.bandwidth")}},
      of_serving("serving.pushes_kv"),
      {"serving.pushes_kv", "there is a prefill deployment", {on("prefill.present")}},
      {"serving.pushes_kv", "transfer.initiative is auto", {is("transfer.initiative", {"auto"})}},
      of_task("serving.remakes_first_token", "task is request or serve", {"request", "serve"}),
      {"serving.remakes_first_token", "there is a prefill deployment", {on("prefill.present")}},
      {"serving.remakes_first_token",
       "transfer.first_token is auto",
       {is("transfer.first_token", {"auto"})}},
      of_serving("serving.reserved_decode_tokens"),
      {"serving.reserved_decode_tokens", "there is a prefill deployment", {on("prefill.present")}},
      {"serving.reserved_decode_tokens",
       "serving.policy sets no room aside for whole answers, as orca, no_evict and static do",
       {is("serving.policy", {"vllm_v1", "vllm_v0", "sarathi", "sglang"})}},
      of_serving("serving.preempted_to_host"),
      {"serving.preempted_to_host", "there is a prefill deployment", {on("prefill.present")}},
      {"serving.preempted_to_host",
       "serving.policy sets no room aside for whole answers, as orca, no_evict and static do",
       {is("serving.policy", {"vllm_v1", "vllm_v0", "sarathi", "sglang"})}},
      {"cluster.oversubscription",
       "there are pods (cluster.pod_nodes)",
       {above("cluster.pod_nodes", 0)}},
      {"cluster.pod_nodes",
       "the ways out of a pod are thinner than its adapters (cluster.oversubscription)",
       {above("cluster.oversubscription", 1)}}};
}

}  // namespace engine

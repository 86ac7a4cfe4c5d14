// Rules of engine/leaves/leaf_use.h about what shares a device or a step: a neighbour, adapters, the clock.
#include <string_view>
#include <vector>

#include "engine/leaves/leaf_use_rules.h"
#include "engine/leaves/leaf_use_words.h"

namespace engine {

using namespace leaf_use_words;

std::vector<LeafUse> neighbour_uses() {
  std::vector<LeafUse> uses{
      of_task("neighbour", "task is step or serve", {"step", "serve"}),
      of_task("neighbour.step", "task is step", {"step"}),
      of_serving("neighbour.load"),
      of_task("sharing", "task is step or serve", {"step", "serve"}),
      {"sharing", "there is a neighbour", {on("neighbour.present")}},
      {"sharing.share",
       "sharing.mode is time_slices, spatial or mig",
       {is("sharing.mode", {"time_slices", "spatial", "mig"})}},
      {"sharing.memory",
       "sharing.mode is time_slices, streams or spatial",
       {is("sharing.mode", {"time_slices", "streams", "spatial"})}},
      {"sharing.memory",
       "sharing.swap is false, or task is serve",
       {zero("sharing.swap"), is("task", {"serve"})}},
      {"sharing.switch_time", "sharing.mode is time_slices", {is("sharing.mode", {"time_slices"})}},
      {"sharing.slice", "sharing.mode is time_slices", {is("sharing.mode", {"time_slices"})}},
      {"sharing.slice",
       "sharing.switch_time is above 0, or sharing.swap is true",
       {above("sharing.switch_time", 0), on("sharing.swap")}},
  };
  for (const std::string_view path : {"neighbour.device", "neighbour.cluster", "neighbour.parallel",
                                      "neighbour.serving.replicas", "neighbour.serving.clock"}) {
    uses.push_back({path, "the deployment has devices of its own, which a neighbour has not", {}});
  }
  for (const std::string_view path :
       {"neighbour.serving.pushes_kv", "neighbour.serving.remakes_first_token",
        "neighbour.serving.reserved_decode_tokens", "neighbour.serving.preempted_to_host"}) {
    uses.push_back(
        {path, "another deployment reads the prompts, which it does not for a neighbour", {}});
  }
  uses.push_back(
      {"neighbour.host.graph_sizes", "the deployment has a draft, which a neighbour has not", {}});
  return uses;
}

std::vector<LeafUse> adapter_uses() {
  std::vector<LeafUse> uses{
      of_task("serving.lora", "task is step or serve", {"step", "serve"}),
      {"serving.lora",
       "load.adapters (task step: step.adapters) is above 0",
       {above("load.adapters", 0), above("step.adapters", 0)}},
      {"load.adapter_skew", "load.adapters is above 1", {above("load.adapters", 1)}},
  };
  for (const std::string_view path : {"serving.lora.load_bandwidth", "serving.lora.load_latency"}) {
    uses.push_back(of_serving(path));
    uses.push_back({path, "serving.lora.slots is above 0", {above("serving.lora.slots", 0)}});
  }
  return uses;
}

std::vector<LeafUse> clock_uses() {
  std::vector<LeafUse> uses{of_serving("serving.clock"),
                            {"prefill.serving.clock",
                             "the deployment generates tokens, which one for prompts does not",
                             {}}};
  for (const std::string_view path :
       {"serving.clock.lowest", "serving.clock.margin", "serving.clock.power_exponent"}) {
    uses.push_back({path, "serving.clock.mode is slo", {is("serving.clock.mode", {"slo"})}});
  }
  return uses;
}

}  // namespace engine

// The rules of engine/leaves/leaf_use.h about speculation, and about the deployment that proposes tokens.
#include <string_view>
#include <vector>

#include "engine/leaves/leaf_use_rules.h"
#include "engine/leaves/leaf_use_words.h"

namespace engine {

using namespace leaf_use_words;

namespace {

// What a deployment that only proposes tokens has from the main one, or has no use for.
constexpr std::string_view kNotInDrafts[] = {
    "draft.serving",
    "draft.host.step_overhead",
    "draft.host.step_per_sequence",
    "draft.host.step_per_kv_token",
    "draft.host.request_latency",
    "draft.host.front_end_per_message",
    "draft.host.front_end_processes",
    "draft.host.front_end_merges",
    "draft.model.max_context",
    "draft.device.array.multiply_energy",
    "draft.device.array.buffer_energy",
    "draft.device.array.memory_energy",
    "draft.device.array.multiplier_area_um2",
    "draft.device.array.buffer_area_mm2",
};

}  // namespace

std::vector<LeafUse> speculation_uses() {
  const Names methods{"draft_model", "ngram", "heads", "mtp", "self"};
  std::vector<LeafUse> uses{
      of_task("speculation", "task is step, request or serve", {"step", "request", "serve"}),
      {"speculation",
       "task is request or serve, or step.phase is decode",
       {is("task", {"request", "serve"}), is("step.phase", {"decode"})}},
      {"speculation.tokens", "speculation.method is not none", {is("speculation.method", methods)}},
      {"speculation.draft_overhead",
       "speculation.method is draft_model, heads, mtp or self",
       {is("speculation.method", {"draft_model", "heads", "mtp", "self"})}},
      {"speculation.draft_window",
       "speculation.method is draft_model, mtp or self",
       {is("speculation.method", {"draft_model", "mtp", "self"})}},
      {"speculation.further_candidates",
       "speculation.tree has candidates",
       {set("speculation.tree")}},
      {"speculation.workload",
       "there is a speculation.acceptance_file",
       {set("speculation.acceptance_checksum")}},
      {"speculation.acceptance",
       "no speculation.acceptance_file takes its place",
       {zero("speculation.acceptance_checksum")}},
      of_serving("speculation.dynamic"),
      of_serving("speculation.draws"),
      {"speculation.lookup_time",
       "speculation.method is ngram",
       {is("speculation.method", {"ngram"})}},
  };
  for (const std::string_view path :
       {"speculation.method", "speculation.acceptance", "speculation.acceptance_checksum",
        "speculation.workload", "speculation.tree", "speculation.further_candidates",
        "speculation.dynamic", "speculation.draws", "speculation.draft_window",
        "speculation.draft_overhead", "speculation.lookup_time", "host.graph_sizes"}) {
    uses.push_back({path, "speculation.tokens is above 0", {above("speculation.tokens", 0)}});
  }
  for (const std::string_view path :
       {"speculation.acceptance", "speculation.acceptance_checksum", "speculation.tree",
        "speculation.dynamic", "speculation.draws", "host.graph_sizes"}) {
    uses.push_back({path, "speculation.method is not none", {is("speculation.method", methods)}});
  }
  return uses;
}

std::vector<LeafUse> draft_uses() {
  std::vector<LeafUse> uses{
      of_task("draft", "task is step, request or serve", {"step", "request", "serve"}),
      {"draft",
       "task is request or serve, or step.phase is decode",
       {is("task", {"request", "serve"}), is("step.phase", {"decode"})}},
      {"draft", "speculation.method is draft_model", {is("speculation.method", {"draft_model"})}},
      {"draft", "speculation.tokens is above 0", {above("speculation.tokens", 0)}},
      {"draft.host.graph_sizes", "speculation.tree has candidates", {set("speculation.tree")}}};
  for (const std::string_view path : kNotInDrafts) {
    uses.push_back({path, "the deployment serves requests, which a draft does not", {}});
  }
  return uses;
}

}  // namespace engine

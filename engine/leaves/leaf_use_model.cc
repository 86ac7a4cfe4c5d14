// Rules of engine/leaves/leaf_use.h about parts that a model may not have.
#include <vector>

#include "engine/leaves/leaf_use_rules.h"
#include "engine/leaves/leaf_use_words.h"
#include "engine/model/expert_places.h"

namespace engine {

using namespace leaf_use_words;

namespace {

constexpr std::string_view kOfExperts[] = {
    "model.moe.top_k",       "model.moe.intermediate",       "model.moe.shared_intermediate",
    "model.moe.shared_gate", "model.moe.first_dense_layers", "model.moe.every",
    "model.moe.groups",      "model.moe.top_groups",         "model.moe.skew",
    "model.moe.drift",
};
constexpr std::string_view kOfLatents[] = {"model.mla.q_rank", "model.mla.rope_dim",
                                           "model.mla.nope_dim", "model.mla.value_dim"};
constexpr std::string_view kOfScans[] = {
    "model.scan.rule",
    "model.scan.heads",
    "model.scan.head_dim",
    "model.scan.groups",
    "model.scan.convolution",
    "model.scan.gate_rank",
    "model.scan.attention_layers",
};

UseCondition experts_have_copies() {
  return follows({"task", "model.moe.experts", "model.moe.skew", "parallel"},
                 [](const Scenario& scenario, const Deployment& on) {
                   Parallelism parallel = on.parallel;
                   if (scenario.task == Task::train) parallel.expert_copies = ExpertCopies::fewest;
                   return on.model.is_moe() && expert_places(on.model, parallel).redundant > 0;
                 });
}

}  // namespace

std::vector<LeafUse> model_uses() {
  std::vector<LeafUse> uses{
      {"model.moe.shared_gate",
       "the model has experts that every token goes through (model.moe.shared_intermediate)",
       {above("model.moe.shared_intermediate", 0)}},
      {"model.moe.drift",
       "experts have second copies (parallel.redundant_experts and parallel.expert_copies, or "
       "where "
       "parallel.ep does not divide model.moe.experts)",
       {experts_have_copies()}},
      {"model.moe.drift",
       "model.moe.skew is above 0: copies of experts alike need no loads of the past",
       {above("model.moe.skew", 0)}},
      {"model.full_attention_every", "model.window is above 0", {above("model.window", 0)}},
      {"model.rotary_share", "model.rotary is true", {on("model.rotary")}},
  };
  for (const std::string_view path : kOfExperts) {
    uses.push_back({path, "the model has experts", {above("model.moe.experts", 0)}});
  }
  for (const std::string_view path : kOfLatents) {
    uses.push_back({path,
                    "the model has latent attention (model.mla.kv_rank)",
                    {above("model.mla.kv_rank", 0)}});
  }
  for (const std::string_view path : kOfScans) {
    uses.push_back(
        {path, "the model has scan layers (model.scan.state)", {above("model.scan.state", 0)}});
  }
  return uses;
}

}  // namespace engine

// Rules of engine/leaves/leaf_use.h about experts.
#include <vector>

#include "engine/leaves/leaf_use_rules.h"
#include "engine/leaves/leaf_use_words.h"
#include "engine/model/expert_places.h"

namespace engine {

using namespace leaf_use_words;

namespace {

constexpr std::string_view kTravel =
    "several replicas share experts (parallel.ep above parallel.tp)";

UseCondition tokens_travel() {
  return follows({"parallel"}, [](const Scenario&, const Deployment& on) {
    return on.parallel.ep > on.parallel.tp;
  });
}

UseCondition hosts_share_experts() {
  return follows({"parallel"}, [](const Scenario&, const Deployment& on) {
    return shared_by_hosts(on.parallel);
  });
}

}  // namespace

std::vector<LeafUse> expert_uses() {
  return {
      {"parallel.expert_copies", "the model has experts", {above("model.moe.experts", 0)}},
      {"parallel.expert_copies",
       "parallel.redundant_experts is auto",
       {follows(
           {"parallel.redundant_experts"},
           [](const Scenario&, const Deployment& on) { return !on.parallel.states_copies(); })}},
      {"parallel.expert_copies",
       "more than 8 devices share experts, and more than one replica does (parallel.ep above "
       "parallel.tp)",
       {hosts_share_experts()}},
      of_task("parallel.expert_copies", "task is not train: copies would be trained apart",
              {"step", "request", "serve", "denoise"}),
      {"quant.group",
       "quant.weights or quant.activations is narrower than 16 bits",
       {is("quant.weights", {"fp8", "int8", "int4", "fp4"}),
        is("quant.activations", {"fp8", "int8", "int4", "fp4"})}},
      {"quant.scope",
       "quant.weights or quant.activations is narrower than 16 bits",
       {is("quant.weights", {"fp8", "int8", "int4", "fp4"}),
        is("quant.activations", {"fp8", "int8", "int4", "fp4"})}},
      {"serving.expert_exchange", kTravel, {tokens_travel()}},
      {"serving.narrow_exchange", kTravel, {tokens_travel()}},
      {"serving.narrow_exchange",
       "serving.expert_exchange is low_latency, normal, auto or switched",
       {is("serving.expert_exchange", {"low_latency", "normal", "auto", "switched"})}},
      {"serving.narrow_exchange",
       "quant.activations is fp8 and quant.group 33 to 256, blocks of values",
       {follows({"quant"},
                [](const Scenario&, const Deployment& on) {
                  const Quantization& quant = on.quant;
                  return quant.activations == Dtype::fp8 && quant.group > 32 &&
                         quant.group <= kLargestBlock;
                })}},
      {"serving.two_batch_overlap", kTravel, {tokens_travel()}},
      {"serving.four_bit_experts", "the model has experts", {above("model.moe.experts", 0)}},
      {"serving.four_bit_experts", "quant.weights is fp4", {is("quant.weights", {"fp4"})}},
      {"serving.shared_experts",
       "the model has experts that every token goes through (model.moe.shared_intermediate)",
       {above("model.moe.shared_intermediate", 0)}},
      {"serving.shared_experts",
       "serving.two_batch_overlap is false, which hides exchanges behind them instead",
       {follows({"serving.two_batch_overlap", "parallel"},
                [](const Scenario&, const Deployment& on) {
                  return !on.serving.two_batch_overlap || on.parallel.ep <= on.parallel.tp;
                })}},
  };
}

}  // namespace engine

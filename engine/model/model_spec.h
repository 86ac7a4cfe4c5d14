// The shape of a model: everything its operations and its memory follow from. A decoder, or a convolutional network.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/deployment_role.h"
#include "engine/base/enum_names.h"
#include "engine/base/fields.h"
#include "engine/base/task.h"
#include "engine/model/model_parts.h"
#include "engine/model/network.h"
#include "engine/model/scan_op.h"

namespace engine {

enum class MlpKind : std::uint8_t {
  gated,  // two projections up, one down (SwiGLU, GeGLU)
  plain,  // one up, one down (GELU, ReLU)
};
constexpr std::array<std::string_view, 2> enum_names(MlpKind) { return {"gated", "plain"}; }

// Routers that train have a skew of their own: train.routing_skew.
inline constexpr const Condition& with_trained_routers =
    either<"task {}, or train.rollout.prompts is above 0 (routers that train: train.routing_skew)",
           while_generating, is_above<"train.rollout.prompts", 0>>;
inline constexpr const Condition& with_copies = said<
    "experts have second copies (parallel.redundant_experts and parallel.expert_copies, or "
    "where parallel.ep does not divide model.moe.experts)",
    holds<Fact::experts_have_copies>>;
inline constexpr const Condition& with_favourites =
    said<"model.moe.skew is above 0: copies of experts alike need no loads of the past",
         is_above<"model.moe.skew", 0>>;

// Routed experts in place of the dense MLP; experts = 0 means a dense model.
struct MoeSpec {
  std::int64_t experts = 0;
  std::int64_t top_k = 0;
  std::int64_t intermediate = 0;
  std::int64_t shared_intermediate = 0;
  bool shared_gate = false;
  std::int64_t first_dense_layers = 0;
  std::int64_t every = 1;
  std::int64_t groups = 1;
  std::int64_t top_groups = 1;
  double skew =
      1;  // trained routers have favourites: runs of three models over random tokens fit 0.8 to 1.2
  // No published figure is known. With 0.1, the fullest of 32 devices of eight experts has a tenth more than the mean.
  double drift = 0;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("experts", self.experts, "routed experts in a layer; 0: dense", non_negative);
    visit("top_k", self.top_k, "experts a token is sent to", non_negative);
    visit("intermediate", self.intermediate, "width of one routed expert", non_negative);
    visit("shared_intermediate", self.shared_intermediate,
          "width of the experts every token visits, together", non_negative);
    visit(
        "shared_gate", self.shared_gate,
        "what the experts every token visits give is multiplied by one gate for each token (Qwen)",
        any_value.where(with_shared_experts));
    visit("first_dense_layers", self.first_dense_layers, "leading layers with a dense MLP",
          non_negative);
    visit("every", self.every, "one layer in this many is a mixture; the others are dense",
          at_least(1));
    visit(
        "groups", self.groups,
        "equal groups that the routed experts are divided into; 1: a token may choose any experts",
        at_least(1));
    visit("top_groups", self.top_groups,
          "groups that the experts of one token may come from: a token visits few nodes then",
          at_least(1));
    visit("skew", self.skew,
          "exponent of the power law by which tokens choose experts; 0: all alike; 1, the default, "
          "is "
          "an assumption: benchmarks of random tokens fit it, real text is nearer to 0.3",
          non_negative.where(with_trained_routers));
    visit("drift", self.drift,
          "deviation of an expert's load from the one that second copies were placed for, over its "
          "mean (parallel.redundant_experts); 0: loads are known when copies are placed, which "
          "takes a few copies to even out any skew",
          non_negative.where(either<"", while_generating, is_above<"train.rollout.prompts", 0>>)
              .where(with_copies)
              .where(with_favourites));
  }

  bool operator==(const MoeSpec&) const = default;
};

// Latent attention (as DeepSeek-V2/V3); kv_rank = 0 means ordinary heads.
struct MlaSpec {
  std::int64_t q_rank = 0;
  std::int64_t kv_rank = 0;
  std::int64_t rope_dim = 0;
  std::int64_t nope_dim = 0;
  std::int64_t value_dim = 0;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("q_rank", self.q_rank, "rank of the query projection; 0: full", non_negative);
    visit("kv_rank", self.kv_rank, "rank of the shared KV latent; 0: no latent attention",
          non_negative);
    visit("rope_dim", self.rope_dim, "rotary part of a head, shared by all heads in the cache",
          non_negative);
    visit("nope_dim", self.nope_dim, "non-rotary part of a query or key head", non_negative);
    visit("value_dim", self.value_dim, "width of a value head", non_negative);
  }

  bool operator==(const MlaSpec&) const = default;
};

// Layers that carry a state of fixed size from token to token in place of attention (state-space layers as in Mamba-2, delta rules
// as in Qwen3-Next and Kimi Linear); state = 0 means none.
struct ScanSpec {
  ScanRule rule = ScanRule::add;
  std::int64_t state = 0;
  std::int64_t heads = 1;
  std::int64_t head_dim = 64;
  std::int64_t groups = 1;
  std::int64_t convolution = 4;
  std::int64_t gate_rank = 0;
  std::int64_t attention_layers = 0;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit(
        "rule", self.rule,
        "how a token of a scan layer changes the state of a head. add: the product of its key and "
        "value is added (Mamba-2); delta: what the key finds in the state is first taken out of "
        "the value (gated delta rule, Qwen3-Next); channel_delta: a delta rule with a decay for "
        "each channel of the keys (Kimi Linear)",
        any_value);
    visit(
        "state", self.state,
        "numbers of state for each channel of a scan layer, which delta rules call the width of a "
        "key head; 0: all layers attend",
        non_negative);
    visit("heads", self.heads, "heads of a scan layer, which delta rules call value heads",
          at_least(1));
    visit("head_dim", self.head_dim, "channels of one head of a scan layer", at_least(1));
    visit("groups", self.groups,
          "groups of heads that share what is written to and read from their state, which delta "
          "rules call key heads",
          at_least(1));
    visit("convolution", self.convolution, "tokens that the convolution before a scan spans",
          at_least(1));
    visit("gate_rank", self.gate_rank,
          "width through which the gate of a scan layer's output, and decays of every channel, are "
          "projected (Kimi Linear); 0: straight from the residual stream",
          non_negative);
    visit("attention_layers", self.attention_layers,
          "layers that attend, where the others scan; 0: none does", non_negative);
  }

  bool operator==(const ScanSpec&) const = default;
};

struct ModelSpec {
  static constexpr std::string_view library = "models";

  std::string name = "unnamed";
  std::string hub;
  std::int64_t layers = 1;
  std::int64_t hidden = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 1;
  std::int64_t intermediate = 1;
  MlpKind mlp = MlpKind::gated;
  std::int64_t vocabulary = 1;
  bool tied_embeddings = false;
  bool attention_bias = false;
  bool attention_gate = false;
  bool qk_norm = false;
  bool rotary = true;
  double rotary_share = 1;
  std::int64_t norms_per_layer = 2;
  std::int64_t max_context = 0;
  std::int64_t window = 0;
  std::int64_t full_attention_every = 0;
  std::int64_t mlp_layers = 0;
  std::int64_t modulation = 0;
  MoeSpec moe;
  MlaSpec mla;
  ScanSpec scan;
  std::string network;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name, "name of the model", a_label.even_without(unless_convolving));
    visit("hub", self.hub,
          "repository of its weights on the Hugging Face hub, by which engines know it "
          "(top --launch); no figure depends on it; empty: none",
          a_label.even_without(unless_convolving));
    visit("layers", self.layers, "decoder layers", at_least(1));
    visit("hidden", self.hidden, "width of the residual stream", at_least(1));
    visit("heads", self.heads, "query heads", at_least(1));
    visit("kv_heads", self.kv_heads, "key/value heads", at_least(1));
    visit("head_dim", self.head_dim, "width of one head", at_least(1));
    visit("intermediate", self.intermediate, "width of the dense MLP", non_negative);
    visit("mlp", self.mlp, "form of the dense MLP: gated (three matrices) or plain (two)",
          any_value);
    visit("vocabulary", self.vocabulary, "tokens in the vocabulary", at_least(1));
    visit("tied_embeddings", self.tied_embeddings, "input and output embeddings are one matrix",
          any_value);
    visit("attention_bias", self.attention_bias, "query, key and value projections have a bias",
          any_value);
    visit(
        "attention_gate", self.attention_gate,
        "attention's output is multiplied by a gate for each channel, which is projected with the "
        "queries (Qwen3-Next)",
        any_value);
    visit("qk_norm", self.qk_norm, "queries and keys are normalised per head", any_value);
    visit("rotary", self.rotary, "rotary positions (false: learned absolute positions)", any_value);
    visit("rotary_share", self.rotary_share,
          "share of a head's channels that rotary positions turn; 0: none, as without positions or "
          "with ALiBi, which adds them inside attention",
          between(0, 1).where(is_set<"model.rotary">));
    visit("norms_per_layer", self.norms_per_layer, "norms over the residual stream in one layer",
          non_negative);
    visit("max_context", self.max_context,
          "longest sequence the model is made for; unlimited: none is too long",
          non_negative_or("unlimited").where(where_requests_are));
    visit("window", self.window, "sliding attention window in tokens; 0: none", non_negative);
    visit("full_attention_every", self.full_attention_every,
          "with a window: one layer in this many attends to everything; 0: none does",
          non_negative.where(is_above<"model.window", 0>));
    visit("mlp_layers", self.mlp_layers,
          "layers that have an MLP or experts, spread evenly, where others are attention or a scan "
          "alone (Nemotron); 0: all",
          non_negative);
    visit("modulation", self.modulation,
          "vectors as wide as the residual stream by which a layer of a diffusion transformer "
          "shifts, scales and gates its parts, each projected from what an image is conditioned on "
          "(6 in DiT); 0: none, as in language models",
          non_negative);
    visit("moe", self.moe, "mixture of experts", any_value.where(with_experts));
    visit("mla", self.mla, "latent attention", any_value.where(with_latents));
    visit("scan", self.scan, "layers with a state in place of attention",
          any_value.where(with_scans));
    visit("network", self.network,
          "layers of a convolutional network, which task classify runs and beside which no other "
          "field of a model counts: a list of 'conv CHANNELS', 'pool' and 'linear VALUES', each "
          "with words and numbers. from and side: channels and pixels (of a side) of its input, if "
          "not what the layer before it gives; kernel, stride, groups: as usual, 1 each; pad: "
          "pixels added on each end, if not as many as keep the side (over the stride); add: its "
          "output is summed with a shortcut; times: layers like it. Empty: the model is no such "
          "network",
          phrases_of(network_mistake).even_without(unless_convolving));
  }

  bool is_network() const { return !network.empty(); }
  bool is_moe() const { return moe.experts > 0; }
  bool is_mla() const { return mla.kv_rank > 0; }
  bool scans() const { return scan.state > 0; }
  // Share of a head's channels that positions turn.
  double turned() const { return rotary ? rotary_share : 0; }
  std::int64_t mlps() const { return mlp_layers > 0 ? mlp_layers : layers; }
  // Norms before or after a mixer; the others are around an MLP.
  std::int64_t mixer_norms() const { return norms_per_layer - mlp_norms(); }
  std::int64_t mlp_norms() const { return norms_per_layer / 2; }

  bool operator==(const ModelSpec&) const = default;
};

// Whether all layers let a kernel take decodes with prompts (engine/model/mixers).
bool joinable(const ModelSpec& model);

// How many layers do what.
struct LayerCounts {
  std::int64_t dense = 0;     // dense MLP
  std::int64_t mixture = 0;   // routed experts
  std::int64_t full = 0;      // attention over everything
  std::int64_t windowed = 0;  // attention over the window
  std::int64_t scanning = 0;  // a state in place of attention

  std::int64_t mlps() const { return dense + mixture; }
  std::int64_t attending() const { return full + windowed; }
  std::int64_t all() const { return attending() + scanning; }
  bool operator==(const LayerCounts&) const = default;
};
LayerCounts layer_counts(const ModelSpec& model);

// Parameters of the whole model, by part; what a datasheet calls its size.
struct ParameterCounts {
  double attention = 0;  // all layers
  // All dense layers, shared experts and routers of mixtures, modulation; all.
  double dense_mlp = 0;
  // weights of a convolutional network
  double experts = 0;    // all routed experts
  double embedding = 0;  // input embedding, and positions where they are learned
  double output = 0;     // output projection; 0 when tied
  double norms = 0;
  double total() const { return attention + dense_mlp + experts + embedding + output + norms; }
};
ParameterCounts parameter_counts(const ModelSpec& model);

// Parameters of one mixture beside its routed experts: the router, and experts of this width that every token visits.
double shared_parameters(const ModelSpec& model, std::int64_t shared_intermediate);

// Parameters one token meets.
double active_parameters(const ModelSpec& model);

}  // namespace engine

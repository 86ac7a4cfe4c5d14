// Architectures of HuggingFace whose layers scan or attend.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "sweep/language/hf_readers.h"

namespace sweep {
namespace {

using engine::ModelSpec;

std::int64_t entries_named(const HfFields& f, std::string_view list, std::string_view name) {
  if (f.entries(list) == 0) return 0;
  return std::ranges::count(f.find(list)->items, name, &Node::text);
}

// What Bamba and Granite have. Without `layer_types` nothing says which layers attend.
void read_scanning(const HfFields& f, ModelSpec& m) {
  m.layers = f.integer("num_hidden_layers");
  m.hidden = f.integer("hidden_size");
  m.heads = f.integer("num_attention_heads");
  m.kv_heads = f.integer("num_key_value_heads", m.heads);
  m.head_dim = f.integer("head_dim", m.hidden / std::max<std::int64_t>(1, m.heads));
  m.intermediate = f.integer("intermediate_size");
  m.vocabulary = f.integer("vocab_size");
  m.attention_bias = f.boolean("attention_bias", false);
  m.scan.state = f.integer("mamba_d_state", 256);
  m.scan.heads = f.integer("mamba_n_heads", 128);
  m.scan.groups = f.integer("mamba_n_groups", 1);
  m.scan.convolution = f.integer("mamba_d_conv", 4);
  // mamba_d_head may say "auto", and is this in any case.
  m.scan.head_dim =
      f.integer("mamba_expand", 2) * m.hidden / std::max<std::int64_t>(1, m.scan.heads);
}

}  // namespace

void read_bamba(const HfFields& f, ModelSpec& m) {
  read_scanning(f, m);
  m.max_context = f.integer("max_position_embeddings", 262144);
  m.tied_embeddings = f.boolean("tie_word_embeddings", false);
  m.scan.attention_layers = f.entries("attn_layer_indices");
  m.rotary_share = 0.5;  // set by BambaConfig, whatever the file says
}

void read_granite_hybrid(const HfFields& f, ModelSpec& m) {
  read_scanning(f, m);
  m.max_context = f.integer("max_position_embeddings", 2048);
  m.tied_embeddings = f.boolean("tie_word_embeddings", true);
  m.scan.attention_layers = entries_named(f, "layer_types", "attention");
  const Node* positions = f.find("position_embedding_type");
  m.rotary_share = positions != nullptr && positions->text == "rope" ? 1 : 0;
  if (m.scan.attention_layers == m.layers) m.scan = {};
  // What every token visits stands alone in models without experts.
  const std::int64_t shared = f.integer("shared_intermediate_size", 1024);
  m.moe.experts = f.integer("num_local_experts", 8);
  if (m.moe.experts == 0) {
    m.intermediate = shared;
    return;
  }
  m.moe.top_k = f.integer("num_experts_per_tok", 2);
  m.moe.intermediate = m.intermediate;
  m.moe.shared_intermediate = shared;
  m.intermediate = 0;
}

// Layers of nothing but a scan, of texts of any length.
void read_mamba2(const HfFields& f, ModelSpec& m) {
  m.layers = f.integer("num_hidden_layers");
  m.hidden = f.integer("hidden_size");
  m.vocabulary = f.integer("vocab_size");
  m.tied_embeddings = f.boolean("tie_word_embeddings", false);
  m.intermediate = 0;
  m.norms_per_layer = 1;
  m.scan.state = f.integer("state_size", 128);
  m.scan.heads = f.integer("num_heads", 128);
  m.scan.head_dim = f.integer("head_dim", 64);
  m.scan.groups = f.integer("n_groups", 8);
  m.scan.convolution = f.integer("conv_kernel", 4);
  if (f.boolean("use_bias", false)) f.refuse("use_bias", "biases of projections are not modelled");
}

// Blocks are a scan (M), attention (*), an MLP (-) or experts (E) alone, each with its norm; an MLP belongs to the mixer before it.
void read_nemotron_h(const HfFields& f, ModelSpec& m) {
  const Node* pattern = f.find("hybrid_override_pattern");
  if (pattern == nullptr || !pattern->is_scalar()) {
    return f.refuse("hybrid_override_pattern", "it says what each block is, and is missing");
  }
  const std::string& blocks = pattern->text;
  const auto count = [&blocks](char kind) { return std::ranges::count(blocks, kind); };
  const std::int64_t scans = count('M'), attending = count('*'), dense = count('-');
  const std::int64_t mixtures = count('E');
  if (scans + attending + dense + mixtures != std::int64_t(blocks.size())) {
    return f.refuse("hybrid_override_pattern", "blocks are M, *, - or E");
  }
  if ((dense > 0 && mixtures > 0) || dense + mixtures > scans + attending) {
    return f.refuse("hybrid_override_pattern",
                    "blocks of MLPs beside blocks of experts, or more of them than of mixers, are "
                    "not modelled");
  }
  if (f.integer("moe_latent_size", 0) > 0) {
    return f.refuse("moe_latent_size", "experts of a narrower latent are not modelled");
  }
  m.layers = scans + attending;
  m.mlp_layers = dense + mixtures;
  m.hidden = f.integer("hidden_size");
  m.heads = f.integer("num_attention_heads");
  m.kv_heads = f.integer("num_key_value_heads", m.heads);
  m.head_dim = f.has("head_dim") ? f.integer("head_dim") : f.integer("attention_head_dim", 128);
  m.intermediate = f.integer("intermediate_size");
  m.mlp = engine::MlpKind::plain;
  m.vocabulary = f.integer("vocab_size");
  m.tied_embeddings = f.boolean("tie_word_embeddings", false);
  m.max_context = f.integer("max_position_embeddings");
  m.rotary_share = 0;  // attention adds no positions
  m.scan = {.state = f.integer("ssm_state_size", 128),
            .heads = f.integer("mamba_num_heads", 128),
            .head_dim = f.integer("mamba_head_dim", 64),
            .groups = f.integer("n_groups", 8),
            .convolution = f.integer("conv_kernel", 4),
            .attention_layers = attending};
  if (m.mlp_layers == 0) m.intermediate = 0;
  if (mixtures == 0) return;
  m.moe.experts = f.integer("n_routed_experts");
  m.moe.top_k = f.integer("num_experts_per_tok");
  m.moe.intermediate = f.integer("moe_intermediate_size");
  m.moe.shared_intermediate = f.integer("moe_shared_expert_intermediate_size", 0);
}

// Qwen3-Next and Qwen3.5: delta rules beside attention with a gate, dense or with experts. Vision models have the text model inside.
void read_qwen3_next(const HfFields& top, ModelSpec& m) {
  const HfFields f = top.inside("text_config");
  read_common(f, m);
  m.head_dim = f.integer("head_dim", 256);
  m.tied_embeddings = top.boolean("tie_word_embeddings", m.tied_embeddings);
  m.qk_norm = true;
  m.attention_gate = f.boolean("attn_output_gate", true);
  m.rotary_share = turned_share(f, 0.25);
  m.scan = {.rule = engine::ScanRule::delta,
            .state = f.integer("linear_key_head_dim", 128),
            .heads = f.integer("linear_num_value_heads", 32),
            .head_dim = f.integer("linear_value_head_dim", 128),
            .groups = f.integer("linear_num_key_heads", 16),
            .convolution = f.integer("linear_conv_kernel_dim", 4)};
  const std::int64_t interval = std::max<std::int64_t>(1, f.integer("full_attention_interval", 4));
  m.scan.attention_layers = f.entries("layer_types") > 0
                                ? entries_named(f, "layer_types", "full_attention")
                                : m.layers / interval;
  if (f.integer("num_experts", 0) > 0) {
    m.intermediate = f.integer("intermediate_size", 0);
    return read_qwen_experts(f, m);
  }
  m.intermediate = f.integer("intermediate_size");
}

// Delta rules with a decay for every channel, beside latent attention without positions.
void read_kimi_linear(const HfFields& f, ModelSpec& m) {
  if (!f.has("linear_attn_config")) {
    return f.refuse("linear_attn_config", "it says which layers attend, and is missing");
  }
  const HfFields linear = f.inside("linear_attn_config");
  m.layers = f.integer("num_hidden_layers");
  m.hidden = f.integer("hidden_size");
  m.heads = f.integer("num_attention_heads");
  m.kv_heads = f.integer("num_key_value_heads", m.heads);
  m.intermediate = f.integer("intermediate_size");
  m.vocabulary = f.integer("vocab_size");
  m.max_context = f.integer("model_max_length", 1048576);
  m.tied_embeddings = f.boolean("tie_word_embeddings", false);
  read_latent(f, m);
  m.rotary_share = f.boolean("mla_use_nope", false) ? 0 : 1;
  const std::int64_t width = linear.integer("head_dim", 128);
  const std::int64_t heads = linear.integer("num_heads", 32);
  m.scan = {.rule = engine::ScanRule::channel_delta,
            .state = width,
            .heads = heads,
            .head_dim = width,
            .groups = heads,
            .convolution = linear.integer("short_conv_kernel_size", 4),
            .gate_rank = width,
            .attention_layers = linear.entries("full_attn_layers")};
  if (linear.boolean("use_full_rank_gate", false)) {
    linear.refuse("use_full_rank_gate",
                  "a gate of full rank beside decays of a lower one is not modelled");
  }
  if (f.boolean("mla_use_output_gate", false)) {
    f.refuse("mla_use_output_gate", "a gate on latent attention is not modelled");
  }
  read_grouped_mixture(
      f, {"num_experts", "num_experts_per_token", "num_shared_experts", "num_expert_group"}, m);
}

const HfUnmodelled* hf_unmodelled(std::string_view architecture) {
  constexpr std::string_view mamba1 =
      "scans as in Mamba-1, with decays for every channel and number of its state";
  constexpr std::string_view picked = "attention to those tokens alone that an indexer picks";
  constexpr std::string_view slim =
      "embeddings in every layer, and layers that attend to the keys and values of others";
  constexpr std::string_view scans =
      "scans that are modelled are those of Mamba-2 (Mamba2ForCausalLM, BambaForCausalLM, "
      "GraniteMoeHybridForCausalLM, NemotronHForCausalLM) and delta rules (Qwen3NextForCausalLM, "
      "Qwen3_5ForConditionalGeneration, KimiLinearForCausalLM)";
  constexpr std::string_view dense =
      "with attention to all tokens it is 'model: {hf_config: ...}' with its 'architectures' "
      "changed to DeepseekV3ForCausalLM: an upper bound of its time at long contexts";
  constexpr std::string_view fields = "write the model's fields yourself, as in specs/models";
  static constexpr std::array all{
      HfUnmodelled{"DeciLMForCausalLM", "layers of different widths", fields},
      HfUnmodelled{"DeepseekV32ForCausalLM", picked, dense},
      HfUnmodelled{"FalconH1ForCausalLM", "layers that attend and scan side by side", scans},
      HfUnmodelled{"FalconMambaForCausalLM", mamba1, scans},
      HfUnmodelled{"Gemma3nForCausalLM", slim, fields},
      HfUnmodelled{"Gemma3nForConditionalGeneration", slim, fields},
      HfUnmodelled{"GlmMoeDsaForCausalLM", picked, fields},
      HfUnmodelled{"JambaForCausalLM", mamba1, scans},
      HfUnmodelled{"Lfm2ForCausalLM", "layers that are a short convolution alone", scans},
      HfUnmodelled{"MambaForCausalLM", mamba1, scans},
      HfUnmodelled{"MiniMaxText01ForCausalLM", "linear attention with a fixed decay", scans},
      HfUnmodelled{"RecurrentGemmaForCausalLM",
                   "recurrent layers whose state is one number a channel", scans},
      HfUnmodelled{"Zamba2ForCausalLM", "attention whose weights several layers share", scans},
  };
  const auto found = std::ranges::find(all, architecture, &HfUnmodelled::architecture);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace sweep

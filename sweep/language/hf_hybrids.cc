// Architectures of HuggingFace whose layers scan or attend.
#include <algorithm>
#include <string_view>

#include "sweep/language/hf_readers.h"

namespace sweep {
namespace {

using engine::ModelSpec;

std::int64_t entries(const HfFields& f, std::string_view list) {
  const Node* node = f.find(list);
  return node != nullptr && node->is_sequence() ? std::int64_t(node->items.size()) : 0;
}

std::int64_t entries_named(const HfFields& f, std::string_view list, std::string_view name) {
  if (entries(f, list) == 0) return 0;
  return std::ranges::count(f.find(list)->items, name, &Node::text);
}

// What both have. Without `layer_types` nothing says which layers attend.
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
  m.scan.attention_layers = entries(f, "attn_layer_indices");
}

void read_granite_hybrid(const HfFields& f, ModelSpec& m) {
  read_scanning(f, m);
  m.max_context = f.integer("max_position_embeddings", 2048);
  m.tied_embeddings = f.boolean("tie_word_embeddings", true);
  m.scan.attention_layers = entries_named(f, "layer_types", "attention");
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

}  // namespace sweep

// Configurations of GPT-2 and of what was made after it: learned positions, ALiBi, or a part of each head that turns.
#include <algorithm>

#include "sweep/language/hf_readers.h"

namespace sweep {

using engine::MlpKind;
using engine::ModelSpec;

void read_gpt2(const HfFields& f, ModelSpec& m) {
  m.layers = f.integer("n_layer");
  m.hidden = f.integer("n_embd");
  m.heads = f.integer("n_head");
  m.kv_heads = m.heads;
  m.head_dim = m.hidden / std::max<std::int64_t>(1, m.heads);
  m.intermediate = f.integer("n_inner", 4 * m.hidden);
  m.vocabulary = f.integer("vocab_size");
  m.max_context = f.integer("n_positions");
  m.mlp = MlpKind::plain;
  m.tied_embeddings = f.boolean("tie_word_embeddings", true);
  m.attention_bias = true;
  m.rotary = false;
}

void read_gptj(const HfFields& f, ModelSpec& m) {
  read_gpt2(f, m);
  m.tied_embeddings = f.boolean("tie_word_embeddings", false);
  m.attention_bias = false;
  m.rotary = true;
  read_turned_channels(f, m, 64);
  m.norms_per_layer = 1;
}

void read_gpt_neox(const HfFields& f, ModelSpec& m) {
  read_llama(f, m);
  m.mlp = MlpKind::plain;
  m.attention_bias = f.boolean("attention_bias", true);
  m.rotary_share = turned_share(f, f.share("rotary_pct", 0.25));
}

void read_opt(const HfFields& f, ModelSpec& m) {
  read_common(f, m);
  m.intermediate = f.integer("ffn_dim");
  m.mlp = MlpKind::plain;
  m.attention_bias = f.boolean("enable_bias", true);
  m.tied_embeddings = f.boolean("tie_word_embeddings", true);
  m.rotary = false;
}

void read_bloom(const HfFields& f, ModelSpec& m) {
  m.layers = f.has("n_layer") ? f.integer("n_layer") : f.integer("num_hidden_layers");
  m.hidden = f.has("n_embed") ? f.integer("n_embed") : f.integer("hidden_size");
  m.heads = f.has("n_head") ? f.integer("n_head") : f.integer("num_attention_heads");
  m.kv_heads = m.heads;
  m.head_dim = m.hidden / std::max<std::int64_t>(1, m.heads);
  m.intermediate = 4 * m.hidden;
  m.vocabulary = f.integer("vocab_size");
  m.max_context = f.integer("seq_length", 2048);
  m.mlp = MlpKind::plain;
  m.tied_embeddings = f.boolean("tie_word_embeddings", true);
  m.attention_bias = true;
  add_no_positions(m);  // ALiBi
}

void read_falcon(const HfFields& f, ModelSpec& m) {
  m.layers = f.has("n_layer") ? f.integer("n_layer") : f.integer("num_hidden_layers");
  m.hidden = f.integer("hidden_size");
  m.heads = f.has("n_head") ? f.integer("n_head") : f.integer("num_attention_heads");
  const bool grouped = f.boolean("new_decoder_architecture", false);
  const bool one = f.boolean("multi_query", true);
  m.kv_heads = grouped ? f.integer("num_kv_heads", m.heads) : one ? 1 : m.heads;
  m.head_dim = m.hidden / std::max<std::int64_t>(1, m.heads);
  m.intermediate = f.integer("ffn_hidden_size", 4 * m.hidden);
  m.vocabulary = f.integer("vocab_size");
  m.max_context = f.integer("max_position_embeddings", 2048);
  m.mlp = MlpKind::plain;
  m.tied_embeddings = f.boolean("tie_word_embeddings", true);
  m.attention_bias = f.boolean("bias", false);
  m.norms_per_layer = !grouped && f.boolean("parallel_attn", true) ? 1 : 2;
  if (f.boolean("alibi", false)) add_no_positions(m);
}

void read_gpt_bigcode(const HfFields& f, ModelSpec& m) {
  read_gpt2(f, m);
  if (f.boolean("multi_query", true)) m.kv_heads = 1;
}

}  // namespace sweep

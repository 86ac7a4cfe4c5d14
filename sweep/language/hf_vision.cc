// Architectures of HuggingFace that see: the text model inside. Files may leave out what equals the text model's defaults.
#include <algorithm>

#include "sweep/language/hf_readers.h"

namespace sweep {

using engine::ModelSpec;

void read_kimi_k25(const HfFields& top, ModelSpec& m) {
  read_deepseek(top.inside("text_config"), m);
  m.tied_embeddings = top.boolean("tie_word_embeddings", m.tied_embeddings);
}

void read_llava(const HfFields& top, ModelSpec& m) {
  const HfFields f = top.inside("text_config");
  m.layers = f.integer("num_hidden_layers", 32);
  m.hidden = f.integer("hidden_size", 4096);
  m.heads = f.integer("num_attention_heads", 32);
  m.kv_heads = f.integer("num_key_value_heads", m.heads);
  m.head_dim = f.integer("head_dim", m.hidden / std::max<std::int64_t>(1, m.heads));
  m.intermediate = f.integer("intermediate_size", 11008);
  m.vocabulary = f.integer("vocab_size", 32000);
  m.max_context = f.integer("max_position_embeddings", 2048);
  m.tied_embeddings = top.boolean("tie_word_embeddings", false);
}

void read_mistral3(const HfFields& top, ModelSpec& m) {
  read_mistral(top.inside("text_config"), m);
}

void read_qwen2_vl(const HfFields& top, ModelSpec& m) {
  read_qwen2(top.inside("text_config"), m);
  m.tied_embeddings = top.boolean("tie_word_embeddings", m.tied_embeddings);
}

void read_qwen3_vl(const HfFields& top, ModelSpec& m) {
  read_qwen3(top.inside("text_config"), m);
  m.tied_embeddings = top.boolean("tie_word_embeddings", m.tied_embeddings);
}

void read_qwen3_vl_moe(const HfFields& top, ModelSpec& m) {
  read_qwen3_moe(top.inside("text_config"), m);
  m.tied_embeddings = top.boolean("tie_word_embeddings", m.tied_embeddings);
}

}  // namespace sweep

// What each HuggingFace architecture calls its sizes. Defaults are those of its configuration class
// in the transformers library, for keys that published files leave out.
#include <algorithm>

#include "sweep/language/hf_fields.h"

namespace sweep {
namespace {

using engine::MlpKind;
using engine::ModelSpec;

// Keys most decoders share.
void read_common(const HfFields& f, ModelSpec& m) {
  m.layers = f.integer("num_hidden_layers");
  m.hidden = f.integer("hidden_size");
  m.heads = f.integer("num_attention_heads");
  m.kv_heads = f.integer("num_key_value_heads", m.heads);
  m.head_dim = f.integer("head_dim", m.hidden / std::max<std::int64_t>(1, m.heads));
  m.vocabulary = f.integer("vocab_size");
  m.max_context = f.integer("max_position_embeddings");
  m.tied_embeddings = f.boolean("tie_word_embeddings", false);
  m.attention_bias = f.boolean("attention_bias", false);
}

// A window no shorter than the model's context is none.
void read_window(const HfFields& f, ModelSpec& m, std::string_view key) {
  const std::int64_t window = f.integer(key, 0);
  m.window = window < m.max_context ? window : 0;
}

// One full layer in how many, from `layer_types` (newer files) or a pattern length (older ones).
void read_pattern(const HfFields& f, ModelSpec& m, std::string_view key, std::int64_t otherwise) {
  m.full_attention_every = f.integer(key, otherwise);
  const Node* types = f.find("layer_types");
  if (types == nullptr || !types->is_sequence()) return;
  for (std::size_t i = 0; i < types->items.size(); ++i) {
    if (types->items[i].text == "full_attention") {
      m.full_attention_every = std::int64_t(i) + 1;
      return;
    }
  }
  m.full_attention_every = 0;
}

void read_llama(const HfFields& f, ModelSpec& m) {
  read_common(f, m);
  m.intermediate = f.integer("intermediate_size");
}

void read_mistral(const HfFields& f, ModelSpec& m) {
  read_llama(f, m);
  read_window(f, m, "sliding_window");
}

void read_mixtral(const HfFields& f, ModelSpec& m) {
  read_mistral(f, m);
  m.moe.experts = f.integer("num_local_experts");
  m.moe.top_k = f.integer("num_experts_per_tok");
  m.moe.intermediate = m.intermediate;
  m.intermediate = 0;  // no layer has a dense MLP
}

void read_olmoe(const HfFields& f, ModelSpec& m) {
  read_llama(f, m);
  m.qk_norm = true;
  m.moe.experts = f.integer("num_experts");
  m.moe.top_k = f.integer("num_experts_per_tok");
  m.moe.intermediate = m.intermediate;
  m.intermediate = 0;
}

void read_qwen2(const HfFields& f, ModelSpec& m) {
  read_llama(f, m);
  m.attention_bias = true;
  if (f.boolean("use_sliding_window", false)) read_window(f, m, "sliding_window");
}

void read_qwen3(const HfFields& f, ModelSpec& m) {
  read_llama(f, m);
  m.qk_norm = true;
  if (f.boolean("use_sliding_window", false)) read_window(f, m, "sliding_window");
}

void read_qwen_experts(const HfFields& f, ModelSpec& m) {
  m.moe.experts = f.integer("num_experts");
  m.moe.top_k = f.integer("num_experts_per_tok");
  m.moe.intermediate = f.integer("moe_intermediate_size");
  m.moe.shared_intermediate = f.integer("shared_expert_intermediate_size", 0);
  m.moe.every = f.integer("decoder_sparse_step", 1);
  if (m.moe.every == 1) m.intermediate = 0;
}
void read_qwen2_moe(const HfFields& f, ModelSpec& m) {
  read_qwen2(f, m);
  read_qwen_experts(f, m);
}
void read_qwen3_moe(const HfFields& f, ModelSpec& m) {
  read_qwen3(f, m);
  read_qwen_experts(f, m);
}

void read_gemma(const HfFields& f, ModelSpec& m) {
  read_llama(f, m);
  m.tied_embeddings = f.boolean("tie_word_embeddings", true);
}

void read_gemma2(const HfFields& f, ModelSpec& m) {
  read_gemma(f, m);
  m.norms_per_layer = 4;
  read_window(f, m, "sliding_window");
  read_pattern(f, m, "sliding_window_pattern", 2);
}

// Published files leave out what equals the defaults of Gemma3TextConfig.
void read_gemma3(const HfFields& top, ModelSpec& m) {
  const HfFields f = top.inside("text_config");
  m.layers = f.integer("num_hidden_layers");
  m.hidden = f.integer("hidden_size");
  m.intermediate = f.integer("intermediate_size");
  m.heads = f.integer("num_attention_heads", 8);
  m.kv_heads = f.integer("num_key_value_heads", 4);
  m.head_dim = f.integer("head_dim", 256);
  m.vocabulary = f.integer("vocab_size", 262208);
  m.max_context = f.integer("max_position_embeddings", 131072);
  m.tied_embeddings = top.boolean("tie_word_embeddings", true);
  m.qk_norm = true;
  m.norms_per_layer = 4;
  m.window = f.integer("sliding_window", 4096);
  read_pattern(f, m, "sliding_window_pattern", 6);
}

void read_phi(const HfFields& f, ModelSpec& m) {
  read_llama(f, m);
  m.mlp = MlpKind::plain;
  m.attention_bias = true;
  m.norms_per_layer = 1;  // one norm feeds attention and MLP
}

void read_phimoe(const HfFields& f, ModelSpec& m) {
  read_mixtral(f, m);
  m.attention_bias = f.boolean("attention_bias", true);
}

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
  m.norms_per_layer = 1;
}

void read_gpt_neox(const HfFields& f, ModelSpec& m) {
  read_llama(f, m);
  m.mlp = MlpKind::plain;
  m.attention_bias = f.boolean("attention_bias", true);
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
  m.rotary = false;  // ALiBi
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
}

void read_deepseek(const HfFields& f, ModelSpec& m) {
  read_llama(f, m);
  m.mla.q_rank = f.integer("q_lora_rank", 0);
  m.mla.kv_rank = f.integer("kv_lora_rank");
  m.mla.rope_dim = f.integer("qk_rope_head_dim");
  m.mla.nope_dim = f.integer("qk_nope_head_dim");
  m.mla.value_dim = f.integer("v_head_dim");
  m.head_dim = m.mla.rope_dim + m.mla.nope_dim;
  m.moe.experts = f.integer("n_routed_experts", 0);
  if (m.moe.experts == 0) return;
  m.moe.top_k = f.integer("num_experts_per_tok");
  m.moe.intermediate = f.integer("moe_intermediate_size");
  m.moe.shared_intermediate = f.integer("n_shared_experts", 0) * m.moe.intermediate;
  m.moe.first_dense_layers = f.integer("first_k_dense_replace", 0);
  m.moe.every = f.integer("moe_layer_freq", 1);
  m.moe.groups = f.integer("n_group", 1);
  m.moe.top_groups = f.integer("topk_group", 1);
}

void read_glm4_moe(const HfFields& f, ModelSpec& m) {
  read_llama(f, m);
  m.qk_norm = f.boolean("use_qk_norm", false);
  m.moe.experts = f.integer("n_routed_experts");
  m.moe.top_k = f.integer("num_experts_per_tok");
  m.moe.intermediate = f.integer("moe_intermediate_size");
  m.moe.shared_intermediate = f.integer("n_shared_experts", 0) * m.moe.intermediate;
  m.moe.first_dense_layers = f.integer("first_k_dense_replace", 0);
}

void read_gpt_oss(const HfFields& f, ModelSpec& m) {
  read_llama(f, m);
  m.attention_bias = f.boolean("attention_bias", true);
  read_window(f, m, "sliding_window");
  // The first layer slides, the next is full, and so on.
  m.full_attention_every = m.window > 0 ? 2 : 0;
  m.moe.experts =
      f.has("num_local_experts") ? f.integer("num_local_experts") : f.integer("num_experts");
  m.moe.top_k = f.has("num_experts_per_tok") ? f.integer("num_experts_per_tok")
                                             : f.integer("experts_per_token");
  m.moe.intermediate = m.intermediate;
  m.intermediate = 0;
}

void read_internlm2(const HfFields& f, ModelSpec& m) {
  read_llama(f, m);
  m.attention_bias = f.boolean("bias", false);
}

void read_olmo2(const HfFields& f, ModelSpec& m) {
  read_llama(f, m);
  m.qk_norm = true;
}

void read_cohere(const HfFields& f, ModelSpec& m) {
  read_llama(f, m);
  m.max_context = f.integer("model_max_length", m.max_context);
  m.tied_embeddings = f.boolean("tie_word_embeddings", true);
  m.qk_norm = f.boolean("use_qk_norm", false);
  m.norms_per_layer = 1;
}

void read_cohere2(const HfFields& f, ModelSpec& m) {
  read_cohere(f, m);
  read_window(f, m, "sliding_window");
  read_pattern(f, m, "sliding_window_pattern", 4);
}

void read_starcoder2(const HfFields& f, ModelSpec& m) {
  read_mistral(f, m);
  m.mlp = MlpKind::plain;
  m.attention_bias = f.boolean("use_bias", true);
  m.tied_embeddings = f.boolean("tie_word_embeddings", true);
}

void read_llama4(const HfFields& top, ModelSpec& m) {
  const HfFields f = top.inside("text_config");
  read_llama(f, m);
  m.qk_norm = f.boolean("use_qk_norm", true);
  m.window = f.integer("attention_chunk_size", 0);
  m.full_attention_every = m.window > 0 ? f.integer("no_rope_layer_interval", 4) : 0;
  m.moe.experts = f.integer("num_local_experts");
  m.moe.top_k = f.integer("num_experts_per_tok");
  m.moe.intermediate = m.intermediate;
  m.moe.shared_intermediate = m.intermediate;
  m.moe.every = f.integer("interleave_moe_layer_step", 1);
  m.intermediate = m.moe.every > 1 ? f.integer("intermediate_size_mlp") : 0;
}

}  // namespace

const std::vector<HfArchitecture>& hf_table() {
  static const std::vector<HfArchitecture> table{
      {"BambaForCausalLM", read_bamba},
      {"BloomForCausalLM", read_bloom},
      {"Cohere2ForCausalLM", read_cohere2},
      {"CohereForCausalLM", read_cohere},
      {"DeepseekV2ForCausalLM", read_deepseek},
      {"DeepseekV3ForCausalLM", read_deepseek},
      {"FalconForCausalLM", read_falcon},
      {"GPT2LMHeadModel", read_gpt2},
      {"GPTJForCausalLM", read_gptj},
      {"GPTNeoXForCausalLM", read_gpt_neox},
      {"Gemma2ForCausalLM", read_gemma2},
      {"Gemma3ForCausalLM", read_gemma3},
      {"Gemma3ForConditionalGeneration", read_gemma3},
      {"GemmaForCausalLM", read_gemma},
      {"Glm4MoeForCausalLM", read_glm4_moe},
      {"GptOssForCausalLM", read_gpt_oss},
      {"GraniteForCausalLM", read_llama},
      {"GraniteMoeHybridForCausalLM", read_granite_hybrid},
      {"InternLM2ForCausalLM", read_internlm2},
      {"InternLM3ForCausalLM", read_internlm2},
      {"Llama4ForCausalLM", read_llama4},
      {"Llama4ForConditionalGeneration", read_llama4},
      {"LlamaForCausalLM", read_llama},
      {"MistralForCausalLM", read_mistral},
      {"MixtralForCausalLM", read_mixtral},
      {"OPTForCausalLM", read_opt},
      {"Olmo2ForCausalLM", read_olmo2},
      {"OlmoeForCausalLM", read_olmoe},
      {"Phi3ForCausalLM", read_mistral},
      {"PhiForCausalLM", read_phi},
      {"PhiMoEForCausalLM", read_phimoe},
      {"PhimoeForCausalLM", read_phimoe},
      {"Qwen2ForCausalLM", read_qwen2},
      {"Qwen2MoeForCausalLM", read_qwen2_moe},
      {"Qwen3ForCausalLM", read_qwen3},
      {"Qwen3MoeForCausalLM", read_qwen3_moe},
      {"Starcoder2ForCausalLM", read_starcoder2},
  };
  return table;
}

}  // namespace sweep

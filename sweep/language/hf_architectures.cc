// What each HuggingFace architecture calls its sizes. Defaults are those of its configuration class
// in the transformers library, for keys that published files leave out.
#include <algorithm>
#include <string>
#include <vector>

#include "sweep/language/hf_readers.h"

namespace sweep {

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
  m.rotary_share = turned_share(f, 1);
}

double turned_share(const HfFields& f, double otherwise) {
  constexpr std::string_view key = "partial_rotary_factor";
  return f.inside("rope_parameters").share(key, f.share(key, otherwise));
}

void read_turned_channels(const HfFields& f, ModelSpec& m, std::int64_t otherwise) {
  const double turned = double(f.integer("rotary_dim", otherwise));
  m.rotary_share = std::min(1.0, turned / double(std::max<std::int64_t>(1, m.head_dim)));
}

double layers_with_positions(const HfFields& f, const ModelSpec& m) {
  const std::int64_t interval = f.integer("no_rope_layer_interval", 4);
  if (interval == 0) return 1;
  return 1 - double(m.layers / interval) / double(std::max<std::int64_t>(1, m.layers));
}

void add_no_positions(ModelSpec& m) {
  m.rotary = true;
  m.rotary_share = 0;
}

namespace {

// One full layer in how many, from `layer_types` (newer files) or a pattern length (older ones).
void read_pattern(const HfFields& f, ModelSpec& m, std::string_view key, std::int64_t otherwise) {
  if (f.entries("layer_types") == 0) {
    m.full_attention_every = f.integer(key, otherwise);
    return;
  }
  const std::vector<Node>& types = f.find("layer_types")->items;
  const auto first = std::ranges::find(types, "full_attention", &Node::text);
  m.full_attention_every = first == types.end() ? 0 : first - types.begin() + 1;
  if (m.window == 0 || m.full_attention_every == 0) return;
  const std::int64_t full = std::ranges::count(types, "full_attention", &Node::text);
  if (full != m.layers / m.full_attention_every) {
    f.refuse("layer_types", "full attention in layers that no even pattern has is not modelled");
  }
}

// Layers from `max_window_layers` on slide, where any do: all or none can be said here.
void read_upper_window(const HfFields& f, ModelSpec& m) {
  if (!f.boolean("use_sliding_window", false)) return;
  const std::int64_t full = f.integer("max_window_layers", 28);
  if (full >= m.layers) return;
  if (full > 0) {
    return f.refuse(
        "max_window_layers",
        "full attention in the first layers and a window in the others is not modelled");
  }
  read_window(f, m, "sliding_window");
}

}  // namespace

// A window no shorter than the model's context is none.
void read_window(const HfFields& f, ModelSpec& m, std::string_view key) {
  const std::int64_t window = f.integer(key, 0);
  m.window = window < m.max_context ? window : 0;
}

void read_llama(const HfFields& f, ModelSpec& m) {
  read_common(f, m);
  m.intermediate = f.integer("intermediate_size");
}

void read_mistral(const HfFields& f, ModelSpec& m) {
  read_llama(f, m);
  read_window(f, m, "sliding_window");
}

void read_qwen2(const HfFields& f, ModelSpec& m) {
  read_llama(f, m);
  m.attention_bias = true;
  read_upper_window(f, m);
}

void read_qwen3(const HfFields& f, ModelSpec& m) {
  read_llama(f, m);
  m.qk_norm = true;
  read_upper_window(f, m);
}

void read_ernie(const HfFields& f, ModelSpec& m) {
  read_llama(f, m);
  m.tied_embeddings = f.boolean("tie_word_embeddings", true);
  m.attention_bias = f.boolean("use_bias", false);
}

void read_mpt(const HfFields& f, ModelSpec& m) {
  m.layers = f.integer("n_layers");
  m.hidden = f.integer("d_model");
  m.heads = f.integer("n_heads");
  m.kv_heads = f.inside("attn_config").integer("kv_n_heads", m.heads);
  m.head_dim = m.hidden / std::max<std::int64_t>(1, m.heads);
  m.intermediate = f.integer("expansion_ratio", 4) * m.hidden;
  m.vocabulary = f.integer("vocab_size");
  m.max_context = f.integer("max_seq_len");
  m.mlp = MlpKind::plain;
  m.tied_embeddings = f.boolean("tie_word_embeddings", true);
  m.attention_bias = !f.boolean("no_bias", false);
  const HfFields attention = f.inside("attn_config");
  m.rotary = attention.boolean("rope", false);
  if (attention.boolean("alibi", false)) add_no_positions(m);
}

namespace {

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
  m.rotary_share = turned_share(f, 0.5);
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

void read_olmo3(const HfFields& f, ModelSpec& m) {
  read_olmo2(f, m);
  read_window(f, m, "sliding_window");
  read_pattern(f, m, "sliding_window_pattern", 4);
}

void read_stablelm(const HfFields& f, ModelSpec& m) {
  read_llama(f, m);
  m.attention_bias = f.boolean("use_qkv_bias", false);
  m.qk_norm = f.boolean("qk_layernorm", false);
  m.norms_per_layer = f.boolean("use_parallel_residual", false) ? 1 : 2;
  m.rotary_share = turned_share(f, 0.25);
}

void read_glm(const HfFields& f, ModelSpec& m) {
  read_llama(f, m);
  m.attention_bias = f.boolean("attention_bias", true);
  m.rotary_share = turned_share(f, 0.5);
}

// With norms behind attention and MLP, too.
void read_glm4(const HfFields& f, ModelSpec& m) {
  read_llama(f, m);
  m.norms_per_layer = 4;
  m.rotary_share = turned_share(f, 0.5);
}

void read_arcee(const HfFields& f, ModelSpec& m) {
  read_llama(f, m);
  m.mlp = MlpKind::plain;
}

void read_nemotron(const HfFields& f, ModelSpec& m) {
  read_arcee(f, m);
  m.rotary_share = turned_share(f, 0.5);
}

void read_smollm3(const HfFields& f, ModelSpec& m) {
  read_llama(f, m);
  m.tied_embeddings = f.boolean("tie_word_embeddings", true);
  m.rotary_share = layers_with_positions(f, m);
}

// Where some layers slide, the others have no positions.
void read_exaone4(const HfFields& f, ModelSpec& m) {
  read_llama(f, m);
  m.qk_norm = true;
  read_window(f, m, "sliding_window");
  if (m.window == 0) return;
  const Node* pattern = f.find("sliding_window_pattern");  // "LLLG", or its length
  const bool letters = pattern != nullptr && pattern->text.find('G') != std::string::npos;
  read_pattern(f, m, letters ? "" : "sliding_window_pattern",
               letters ? std::int64_t(pattern->text.size()) : 4);
  if (m.full_attention_every > 0) m.rotary_share = 1 - 1 / double(m.full_attention_every);
}

void read_apertus(const HfFields& f, ModelSpec& m) {
  read_arcee(f, m);
  m.qk_norm = true;
}

// The first Qwen; its files count both projections up as one.
void read_qwen(const HfFields& f, ModelSpec& m) {
  m.layers = f.integer("num_hidden_layers");
  m.hidden = f.integer("hidden_size");
  m.heads = m.kv_heads = f.integer("num_attention_heads");
  m.head_dim = f.integer("kv_channels", m.hidden / std::max<std::int64_t>(1, m.heads));
  m.intermediate = f.integer("intermediate_size") / 2;
  m.vocabulary = f.integer("vocab_size");
  m.max_context = f.integer("seq_length");
  m.tied_embeddings = f.boolean("tie_word_embeddings", false);
  m.attention_bias = true;
}

}  // namespace

const std::vector<HfArchitecture>& hf_table() {
  static const std::vector<HfArchitecture> table{
      {"ApertusForCausalLM", read_apertus},
      {"ArceeForCausalLM", read_arcee},
      {"BambaForCausalLM", read_bamba},
      {"BloomForCausalLM", read_bloom},
      {"Cohere2ForCausalLM", read_cohere2},
      {"CohereForCausalLM", read_cohere},
      {"DbrxForCausalLM", read_dbrx},
      {"DeepseekForCausalLM", read_deepseek_moe},
      {"DeepseekV2ForCausalLM", read_deepseek},
      {"DeepseekV3ForCausalLM", read_deepseek},
      {"Dots1ForCausalLM", read_dots},
      {"Ernie4_5ForCausalLM", read_ernie},
      {"Ernie4_5_MoeForCausalLM", read_ernie_moe},
      {"Exaone4ForCausalLM", read_exaone4},
      {"FalconForCausalLM", read_falcon},
      {"GPT2LMHeadModel", read_gpt2},
      {"GPTBigCodeForCausalLM", read_gpt_bigcode},
      {"GPTJForCausalLM", read_gptj},
      {"GPTNeoXForCausalLM", read_gpt_neox},
      {"Gemma2ForCausalLM", read_gemma2},
      {"Gemma3ForCausalLM", read_gemma3},
      {"Gemma3ForConditionalGeneration", read_gemma3},
      {"GemmaForCausalLM", read_gemma},
      {"Glm4ForCausalLM", read_glm4},
      {"Glm4MoeForCausalLM", read_glm4_moe},
      {"Glm4MoeLiteForCausalLM", read_deepseek},
      {"GlmForCausalLM", read_glm},
      {"GptOssForCausalLM", read_gpt_oss},
      {"GraniteForCausalLM", read_llama},
      {"GraniteMoeForCausalLM", read_granite_moe},
      {"GraniteMoeHybridForCausalLM", read_granite_hybrid},
      {"GraniteMoeSharedForCausalLM", read_granite_moe},
      {"InternLM2ForCausalLM", read_internlm2},
      {"InternLM3ForCausalLM", read_internlm2},
      {"KimiK25ForConditionalGeneration", read_kimi_k25},
      {"KimiLinearForCausalLM", read_kimi_linear},
      {"Llama4ForCausalLM", read_llama4},
      {"Llama4ForConditionalGeneration", read_llama4},
      {"LlamaForCausalLM", read_llama},
      {"LlavaForConditionalGeneration", read_llava},
      {"MPTForCausalLM", read_mpt},
      {"Mamba2ForCausalLM", read_mamba2},
      {"MiMoForCausalLM", read_qwen2},
      {"MiniMaxM2ForCausalLM", read_minimax},
      {"Mistral3ForConditionalGeneration", read_mistral3},
      {"MistralForCausalLM", read_mistral},
      {"MixtralForCausalLM", read_mixtral},
      {"NemotronForCausalLM", read_nemotron},
      {"NemotronHForCausalLM", read_nemotron_h},
      {"OPTForCausalLM", read_opt},
      {"Olmo2ForCausalLM", read_olmo2},
      {"Olmo3ForCausalLM", read_olmo3},
      {"OlmoForCausalLM", read_llama},
      {"OlmoeForCausalLM", read_olmoe},
      {"Phi3ForCausalLM", read_mistral},
      {"PhiForCausalLM", read_phi},
      {"PhiMoEForCausalLM", read_phimoe},
      {"PhimoeForCausalLM", read_phimoe},
      {"QWenLMHeadModel", read_qwen},
      {"Qwen2ForCausalLM", read_qwen2},
      {"Qwen2MoeForCausalLM", read_qwen2_moe},
      {"Qwen2VLForConditionalGeneration", read_qwen2_vl},
      {"Qwen2_5_VLForConditionalGeneration", read_qwen2_vl},
      {"Qwen3ForCausalLM", read_qwen3},
      {"Qwen3MoeForCausalLM", read_qwen3_moe},
      {"Qwen3NextForCausalLM", read_qwen3_next},
      {"Qwen3VLForConditionalGeneration", read_qwen3_vl},
      {"Qwen3VLMoeForConditionalGeneration", read_qwen3_vl_moe},
      {"Qwen3_5ForCausalLM", read_qwen3_next},
      {"Qwen3_5ForConditionalGeneration", read_qwen3_next},
      {"Qwen3_5MoeForCausalLM", read_qwen3_next},
      {"Qwen3_5MoeForConditionalGeneration", read_qwen3_next},
      {"SeedOssForCausalLM", read_llama},
      {"SmolLM3ForCausalLM", read_smollm3},
      {"StableLmForCausalLM", read_stablelm},
      {"Starcoder2ForCausalLM", read_starcoder2},
  };
  return table;
}

}  // namespace sweep

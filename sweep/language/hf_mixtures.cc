// How the configurations of mixtures of experts are read.
#include "sweep/language/hf_readers.h"

namespace sweep {

using engine::ModelSpec;

namespace {

// Every layer is a mixture: its experts have the width that other files give the dense MLP.
void experts_alone(const HfFields& f, ModelSpec& m, std::string_view count) {
  m.moe.experts = f.integer(count);
  m.moe.top_k = f.integer("num_experts_per_tok");
  m.moe.intermediate = m.intermediate;
  m.intermediate = 0;
}

}  // namespace

void read_qwen_experts(const HfFields& f, ModelSpec& m) {
  m.moe.experts = f.integer("num_experts");
  m.moe.top_k = f.integer("num_experts_per_tok");
  m.moe.intermediate = f.integer("moe_intermediate_size");
  m.moe.shared_intermediate = f.integer("shared_expert_intermediate_size", 0);
  m.moe.shared_gate = m.moe.shared_intermediate > 0;
  m.moe.every = f.integer("decoder_sparse_step", 1);
  if (f.entries("mlp_only_layers") > 0) {
    f.refuse("mlp_only_layers", "layers without experts at stated places are not modelled");
  }
  if (m.moe.every == 1) m.intermediate = 0;
}

void read_mixtral(const HfFields& f, ModelSpec& m) {
  read_mistral(f, m);
  experts_alone(f, m, "num_local_experts");
}

void read_olmoe(const HfFields& f, ModelSpec& m) {
  read_llama(f, m);
  m.qk_norm = true;
  experts_alone(f, m, "num_experts");
}

void read_qwen2_moe(const HfFields& f, ModelSpec& m) {
  read_qwen2(f, m);
  read_qwen_experts(f, m);
}

void read_qwen3_moe(const HfFields& f, ModelSpec& m) {
  read_qwen3(f, m);
  read_qwen_experts(f, m);
}

void read_phimoe(const HfFields& f, ModelSpec& m) {
  read_mixtral(f, m);
  m.attention_bias = f.boolean("attention_bias", true);
}

void read_latent(const HfFields& f, ModelSpec& m) {
  m.mla.q_rank = f.integer("q_lora_rank", 0);
  m.mla.kv_rank = f.integer("kv_lora_rank");
  m.mla.rope_dim = f.integer("qk_rope_head_dim");
  m.mla.nope_dim = f.integer("qk_nope_head_dim");
  m.mla.value_dim = f.integer("v_head_dim");
  m.head_dim = m.mla.rope_dim + m.mla.nope_dim;
}

void read_grouped_mixture(const HfFields& f, const MixtureNames& names, ModelSpec& m) {
  m.moe.experts = f.integer(names.experts, 0);
  if (m.moe.experts == 0) return;
  m.moe.top_k = f.integer(names.top_k);
  m.moe.intermediate = f.integer("moe_intermediate_size");
  m.moe.shared_intermediate = f.integer(names.shared, 0) * m.moe.intermediate;
  m.moe.first_dense_layers = f.integer("first_k_dense_replace", 0);
  m.moe.every = f.integer("moe_layer_freq", 1);
  m.moe.groups = f.integer(names.groups, 1);
  m.moe.top_groups = f.integer("topk_group", 1);
}

void read_deepseek(const HfFields& f, ModelSpec& m) {
  read_llama(f, m);
  read_latent(f, m);
  read_grouped_mixture(
      f, {"n_routed_experts", "num_experts_per_tok", "n_shared_experts", "n_group"}, m);
}

void read_deepseek_moe(const HfFields& f, ModelSpec& m) {
  read_llama(f, m);
  m.moe.experts = f.integer("n_routed_experts");
  m.moe.top_k = f.integer("num_experts_per_tok");
  m.moe.intermediate = f.integer("moe_intermediate_size");
  m.moe.shared_intermediate = f.integer("n_shared_experts", 0) * m.moe.intermediate;
  m.moe.first_dense_layers = f.integer("first_k_dense_replace", 0);
}

void read_dots(const HfFields& f, ModelSpec& m) {
  read_deepseek_moe(f, m);
  m.qk_norm = true;
}

void read_glm4_moe(const HfFields& f, ModelSpec& m) {
  read_deepseek_moe(f, m);
  m.qk_norm = f.boolean("use_qk_norm", false);
  m.rotary_share = turned_share(f, 0.5);
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

void read_llama4(const HfFields& top, ModelSpec& m) {
  const HfFields f = top.inside("text_config");
  read_llama(f, m);
  m.qk_norm = f.boolean("use_qk_norm", true);
  m.window = f.integer("attention_chunk_size", 0);
  m.full_attention_every = m.window > 0 ? f.integer("no_rope_layer_interval", 4) : 0;
  m.rotary_share = layers_with_positions(f, m);
  m.moe.experts = f.integer("num_local_experts");
  m.moe.top_k = f.integer("num_experts_per_tok");
  m.moe.intermediate = m.intermediate;
  m.moe.shared_intermediate = m.intermediate;
  m.moe.every = f.integer("interleave_moe_layer_step", 1);
  m.intermediate = m.moe.every > 1 ? f.integer("intermediate_size_mlp") : 0;
}

void read_minimax(const HfFields& f, ModelSpec& m) {
  read_mixtral(f, m);
  m.qk_norm = f.boolean("use_qk_norm", false);
  read_turned_channels(f, m, m.head_dim);
}

void read_granite_moe(const HfFields& f, ModelSpec& m) {
  read_llama(f, m);
  experts_alone(f, m, "num_local_experts");
  m.moe.shared_intermediate = f.integer("shared_intermediate_size", 0);
}

void read_ernie_moe(const HfFields& f, ModelSpec& m) {
  read_ernie(f, m);
  m.moe.experts = f.integer("moe_num_experts");
  m.moe.top_k = f.integer("moe_k");
  m.moe.intermediate = f.integer("moe_intermediate_size");
  m.moe.shared_intermediate = f.integer("moe_num_shared_experts", 0) * m.moe.intermediate;
  m.moe.first_dense_layers = f.integer("moe_layer_start_index", 0);
}

void read_dbrx(const HfFields& f, ModelSpec& m) {
  read_mpt(f, m);
  m.mlp = engine::MlpKind::gated;
  m.attention_bias = false;
  m.rotary = true;
  m.tied_embeddings = f.boolean("tie_word_embeddings", false);
  const HfFields mlp = f.inside("ffn_config");
  m.moe.experts = mlp.integer("moe_num_experts", 4);
  m.moe.top_k = mlp.integer("moe_top_k", 1);
  m.moe.intermediate = mlp.integer("ffn_hidden_size", 3584);
  m.intermediate = 0;
}

}  // namespace sweep

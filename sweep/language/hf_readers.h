// Readers of configurations that several files of this room share.
#pragma once

#include <string_view>

#include "sweep/language/hf_fields.h"

namespace sweep {

// hf_architectures.cc
void read_common(const HfFields& fields, engine::ModelSpec& model);
void read_ernie(const HfFields& fields, engine::ModelSpec& model);
void read_llama(const HfFields& fields, engine::ModelSpec& model);
void read_mistral(const HfFields& fields, engine::ModelSpec& model);
void read_mpt(const HfFields& fields, engine::ModelSpec& model);
void read_qwen2(const HfFields& fields, engine::ModelSpec& model);
void read_qwen3(const HfFields& fields, engine::ModelSpec& model);
void read_window(const HfFields& fields, engine::ModelSpec& model, std::string_view key);
// The share of a head's channels that positions turn; `otherwise` is the architecture's own default.
double turned_share(const HfFields& fields, double otherwise);
// Where every so-many-th layer has no positions: the share of layers that have some, which is what heads are turned on average.
double layers_with_positions(const HfFields& fields, const engine::ModelSpec& model);
// The number of channels that are turned, where files say that.
void read_turned_channels(const HfFields& fields, engine::ModelSpec& model, std::int64_t otherwise);

// Learned positions turn nothing and have a table; ALiBi and models without positions have none.
void add_no_positions(engine::ModelSpec& model);

// hf_gpt.cc
void read_bloom(const HfFields& fields, engine::ModelSpec& model);
void read_falcon(const HfFields& fields, engine::ModelSpec& model);
void read_gpt2(const HfFields& fields, engine::ModelSpec& model);
void read_gpt_bigcode(const HfFields& fields, engine::ModelSpec& model);
void read_gpt_neox(const HfFields& fields, engine::ModelSpec& model);
void read_gptj(const HfFields& fields, engine::ModelSpec& model);
void read_opt(const HfFields& fields, engine::ModelSpec& model);

// hf_hybrids.cc
void read_bamba(const HfFields& fields, engine::ModelSpec& model);
void read_granite_hybrid(const HfFields& fields, engine::ModelSpec& model);
void read_kimi_linear(const HfFields& fields, engine::ModelSpec& model);
void read_mamba2(const HfFields& fields, engine::ModelSpec& model);
void read_nemotron_h(const HfFields& fields, engine::ModelSpec& model);
void read_qwen3_next(const HfFields& fields, engine::ModelSpec& model);

// hf_mixtures.cc
void read_dbrx(const HfFields& fields, engine::ModelSpec& model);
void read_deepseek(const HfFields& fields, engine::ModelSpec& model);
void read_deepseek_moe(const HfFields& fields, engine::ModelSpec& model);
void read_dots(const HfFields& fields, engine::ModelSpec& model);
void read_ernie_moe(const HfFields& fields, engine::ModelSpec& model);
void read_glm4_moe(const HfFields& fields, engine::ModelSpec& model);
void read_gpt_oss(const HfFields& fields, engine::ModelSpec& model);
void read_granite_moe(const HfFields& fields, engine::ModelSpec& model);
// Experts in groups, as DeepSeek has them, under the names that a configuration gives to four of the fields.
struct MixtureNames {
  std::string_view experts, top_k, shared, groups;
};
void read_grouped_mixture(const HfFields& fields, const MixtureNames& names,
                          engine::ModelSpec& model);
void read_latent(const HfFields& fields, engine::ModelSpec& model);
void read_llama4(const HfFields& fields, engine::ModelSpec& model);
void read_minimax(const HfFields& fields, engine::ModelSpec& model);
void read_mixtral(const HfFields& fields, engine::ModelSpec& model);
void read_olmoe(const HfFields& fields, engine::ModelSpec& model);
void read_phimoe(const HfFields& fields, engine::ModelSpec& model);
void read_qwen2_moe(const HfFields& fields, engine::ModelSpec& model);
void read_qwen3_moe(const HfFields& fields, engine::ModelSpec& model);
void read_qwen_experts(const HfFields& fields, engine::ModelSpec& model);

// hf_vision.cc
void read_kimi_k25(const HfFields& fields, engine::ModelSpec& model);
void read_llava(const HfFields& fields, engine::ModelSpec& model);
void read_mistral3(const HfFields& fields, engine::ModelSpec& model);
void read_qwen2_vl(const HfFields& fields, engine::ModelSpec& model);
void read_qwen3_vl(const HfFields& fields, engine::ModelSpec& model);
void read_qwen3_vl_moe(const HfFields& fields, engine::ModelSpec& model);

}  // namespace sweep

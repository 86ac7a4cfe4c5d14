#include "sweep/language/hf_quantization.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sweep/language/yaml_file.h"
#include "tests/support/toy_rows.h"
#include "tests/sweep/sweep_fixture.h"

namespace sweep {
namespace {

using engine::Dtype;
using engine::QuantScope;

HfQuantization read(const std::string& quantization, std::int64_t layers = 4) {
  const auto root = read_yaml("{\"quantization_config\": " + quantization + "}", "config.json");
  EXPECT_TRUE(root.ok());
  return root ? read_hf_quantization(*root, layers) : HfQuantization{};
}

struct Case {
  const char* config;
  HfQuantization::Matrices expected;
};

TEST(HfQuantization, PublishedRecipesAreUnderstood) {
  const Case cases[] = {
      {R"({"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "weight_block_size": [128, 128]})",
       {.weights = Dtype::fp8, .activations = Dtype::fp8, .group = 128}},
      {R"({"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0})",
       {.weights = Dtype::fp8, .activations = Dtype::fp8, .group = 4096}},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": true})",
       {.weights = Dtype::int4, .group = 128}},
      {R"({"quant_method": "gptq", "bits": 8, "group_size": -1})",
       {.weights = Dtype::int8, .group = 4096}},
      {R"({"quant_method": "awq", "bits": 4, "group_size": 64, "version": "gemm", "zero_point": true})",
       {.weights = Dtype::int4, .group = 64}},
      {R"({"quant_method": "awq", "w_bit": 4, "q_group_size": 32})",
       {.weights = Dtype::int4, .group = 32}},
      {R"({"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]})",
       {.weights = Dtype::fp4, .group = 32, .scope = QuantScope::experts}},
      {R"({"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16})",
       {.weights = Dtype::fp4, .activations = Dtype::fp4, .group = 16}},
      {R"({"quant_algo": "FP8", "producer": {"name": "modelopt"}})",
       {.weights = Dtype::fp8, .activations = Dtype::fp8, .group = 4096}},
      {R"({"quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_quant_type": "nf4"})",
       {.weights = Dtype::int4, .group = 64}},
      {R"({"quant_method": "bitsandbytes", "load_in_8bit": true})",
       {.weights = Dtype::int8, .activations = Dtype::int8, .group = 4096}},
      {R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float", "strategy": "channel"}, "input_activations": {"num_bits": 8, "type": "float"}, "targets": ["Linear"]}}})",
       {.weights = Dtype::fp8, .activations = Dtype::fp8, .group = 4096}},
      {R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int", "group_size": 32}, "input_activations": null}}})",
       {.weights = Dtype::int4, .group = 32}},
      {R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "float", "group_size": 16}, "input_activations": {"num_bits": 4, "type": "float", "group_size": 16}}}})",
       {.weights = Dtype::fp4, .activations = Dtype::fp4, .group = 16}},
  };
  for (const Case& entry : cases) {
    const HfQuantization found = read(entry.config);
    ASSERT_TRUE(found.matrices) << entry.config;
    EXPECT_EQ(*found.matrices, entry.expected) << entry.config;
    EXPECT_FALSE(found.unknown) << entry.config;
  }
}

TEST(HfQuantization, TheCacheHasAFormatOfItsOwn) {
  EXPECT_EQ(read(R"({"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"})").kv, Dtype::fp8);
  EXPECT_EQ(
      read(
          R"({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 8, "type": "int"}}},
                     "kv_cache_scheme": {"num_bits": 8, "type": "float"}})")
          .kv,
      Dtype::fp8);
  EXPECT_FALSE(read(R"({"quant_method": "awq"})").kv);
}

QuantScope scope_of(const std::string& lists, std::int64_t layers = 4) {
  return read(
             R"({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 8, "type": "float"}}}, )" +
                 lists + "}",
             layers)
      .matrices->scope;
}

// Attention that a list spares has 16 bits, in dense models as in mixtures, whatever the list is called; MLPs stay narrow.
TEST(HfQuantization, AttentionThatIsSparedLeavesTheMlps) {
  for (
      const char* lists :
      {R"("ignore": ["lm_head", "re:.*self_attn.*"])", R"("ignore": ["re:.*attention.*"])",
       R"("modules_to_not_convert": ["model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.o_proj", "model.layers.1.self_attn.q_proj", "model.layers.2.self_attn.q_proj", "lm_head"])",
       R"("exclude_modules": ["model.layers.0.self_attn*", "model.layers.1.self_attn*", "model.layers.2.self_attn*", "model.layers.3.self_attn*"])",
       R"("ignored_layers": ["self_attn", "lm_head"])"}) {
    EXPECT_EQ(scope_of(lists), QuantScope::mlps) << lists;
  }
  for (
      const char* lists :
      {R"("ignore": ["lm_head"])", R"("ignore": ["lm_head", "re:.*mlp.gate$"])",
       // Norms, encoders of images, and small projections.
       R"("modules_to_not_convert": ["model.layers.0.self_attn.q_norm", "visual.blocks.0.attn.qkv"])",
       R"("ignore": ["re:.*self_attn.indexer.*", "re:.*self_attn.kv_b_proj"])",
       R"("ignore": ["re:.*post_attention_layernorm"])",
       // Of the first layer alone.
       R"("modules_to_not_convert": ["model.layers.0.self_attn.q_proj", "model.layers.0.mlp.gate_proj"])"}) {
    EXPECT_EQ(scope_of(lists), QuantScope::all) << lists;
  }
}

TEST(HfQuantization, WhatExpertsAloneHaveIsSaidByEitherList) {
  EXPECT_EQ(scope_of(R"("ignore": ["re:.*self_attn.*", "re:.*shared_experts.*", "lm_head"])"),
            QuantScope::experts);
  // Kimi K2.5's own list.
  EXPECT_EQ(
      scope_of(
          R"("ignore": ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*", "re:.*mlp\\.(gate|up|gate_up|down)_proj.*"])"),
      QuantScope::experts);
  // The gate of shared experts is no expert.
  EXPECT_EQ(scope_of(R"("ignore": ["re:.*self_attn.*", "re:.*shared_expert_gate$"])"),
            QuantScope::mlps);
  const auto chosen = [](const std::string& targets) {
    return read(
               R"({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 8, "type": "float"}, "targets": )" +
               targets + "}}}")
        .matrices->scope;
  };
  EXPECT_EQ(chosen(R"(["Linear"])"), QuantScope::all);
  EXPECT_EQ(chosen(R"(["re:.*mlp.experts.*"])"), QuantScope::experts);
  EXPECT_EQ(chosen(R"(["re:.*mlp.(gate|up)_proj", "re:.*mlp.down_proj"])"), QuantScope::mlps);
}

TEST(HfQuantization, WhatIsNotUnderstoodIsSaid) {
  const HfQuantization found = read(R"({"quant_method": "hqq", "nbits": 3})");
  EXPECT_FALSE(found.matrices);
  ASSERT_TRUE(found.unknown);
  EXPECT_EQ(found.unknown->what, "quantization_config: quant_method 'hqq' is not understood");
  EXPECT_EQ(found.unknown->where.line, 1);
  EXPECT_EQ(read(R"({"quant_method": "gptq", "bits": 3})").unknown->what,
            "quantization_config: these settings of 'gptq' are not understood");
  EXPECT_EQ(read("{}").unknown->what, "quantization_config has no quant_method");
  EXPECT_FALSE(read("null").unknown);
}

// A config.json on disk, and sweeps that name it.
class HfQuantizationSweep : public testing::Test {
 protected:
  void write(const std::string& quantization) {
    std::ofstream(folder_.path() / "config.json")
        << R"({"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 2, "hidden_size": 128,
               "num_attention_heads": 4, "intermediate_size": 256, "vocab_size": 1000,
               "max_position_embeddings": 4096)"
        << (quantization.empty() ? "" : ", \"quantization_config\": " + quantization) << "}";
  }
  engine::Result<SweepSpec> read_with(const std::string& text) {
    return read_sweep_text(text, (folder_.path() / "sweep.yaml").string(), toy_library());
  }
  engine::Quantization quant_of(const std::string& text) {
    const auto spec = read_with(text);
    if (!spec) ADD_FAILURE() << engine::to_text(spec.mistakes());
    return spec ? admitted(*spec).front().quant : engine::Quantization{};
  }
  std::string mistakes_with(const std::string& text) {
    const auto spec = read_with(text);
    return spec ? "" : spec.mistakes().front().what;
  }

  tests::TemporaryFolder folder_;
};

constexpr const char* kGptq = R"({"quant_method": "gptq", "bits": 4, "group_size": 64})";

TEST_F(HfQuantizationSweep, TheModelBringsItsFormats) {
  write(kGptq);
  const engine::Quantization quant =
      quant_of("base: {device: toy, model: {hf_config: config.json}}\n");
  EXPECT_EQ(quant.weights, Dtype::int4);
  EXPECT_EQ(quant.activations, Dtype::bf16);
  EXPECT_EQ(quant.group, 64);
  write("");
  EXPECT_EQ(quant_of("base: {device: toy, model: {hf_config: config.json}}\n"),
            engine::Quantization{});
}

TEST_F(HfQuantizationSweep, WhatTheSweepStatesWins) {
  write(kGptq);
  for (const char* base :
       {"{quant: {weights: fp8, activations: fp8}, device: toy, model: {hf_config: config.json}}",
        "{device: toy, model: {hf_config: config.json}, quant: {weights: fp8, activations: "
        "fp8}}"}) {
    const engine::Quantization quant = quant_of(std::string("base: ") + base + "\n");
    EXPECT_EQ(quant.weights, Dtype::fp8);
    EXPECT_EQ(quant.group, 128);
  }
  // The cache is another matter.
  const engine::Quantization kv =
      quant_of("base: {device: toy, model: {hf_config: config.json}, quant: {kv: fp8}}\n");
  EXPECT_EQ(kv.weights, Dtype::int4);
  EXPECT_EQ(kv.kv, Dtype::fp8);
  // So is how far they reach, and how many share a scale: what is not stated is still the file's.
  const engine::Quantization narrow =
      quant_of("base: {device: toy, model: {hf_config: config.json}, quant: {scope: experts}}\n");
  EXPECT_EQ(narrow.weights, Dtype::int4);
  EXPECT_EQ(narrow.group, 64);
  EXPECT_EQ(narrow.scope, QuantScope::experts);
  const engine::Quantization swept = quant_of(
      "base: {device: toy, model: {hf_config: config.json}}\n"
      "axes: [{quant.weights: [bf16, fp8]}]\n");
  EXPECT_EQ(swept.weights, Dtype::bf16);
  EXPECT_EQ(swept.group, 128);
}

TEST_F(HfQuantizationSweep, AnUnknownRecipeNeedsStatedFormats) {
  write(R"({"quant_method": "hqq"})");
  EXPECT_EQ(mistakes_with("base: {device: toy, model: {hf_config: config.json}}\n"),
            "quantization_config: quant_method 'hqq' is not understood");
  EXPECT_EQ(mistakes_with(
                "base: {device: toy, model: {hf_config: config.json}, quant: {weights: int4}}\n"),
            "");
}

TEST_F(HfQuantizationSweep, ResolvedItSaysTheSame) {
  write(kGptq);
  const auto spec = read_with("base: {device: toy, model: {hf_config: config.json}}\n");
  ASSERT_TRUE(spec.ok());
  const auto again = read_sweep_text(spec->resolved, "run.yaml", toy_library());
  ASSERT_TRUE(again.ok()) << engine::to_text(again.mistakes());
  EXPECT_EQ(admitted(*again).front().quant, admitted(*spec).front().quant);
}

}  // namespace
}  // namespace sweep

#include "sweep/language/hf_config.h"

#include <gtest/gtest.h>

#include "engine/leaves.h"
#include "sweep/language/read_value.h"
#include "tests/support/paths.h"
#include "tests/sweep/sweep_fixture.h"

namespace sweep {
namespace {

// A model's published config.json, and its published size in billions of parameters.
struct Published {
  const char* name;
  double billions;
};
void PrintTo(const Published& model, std::ostream* out) { *out << model.name; }

class HfConfig : public testing::TestWithParam<Published> {};

TEST_P(HfConfig, HasThePublishedSize) {
  const auto model = read_hf_config(fixtures() / "hf" / GetParam().name / "config.json");
  ASSERT_TRUE(model.ok()) << engine::to_text(model.mistakes());
  EXPECT_EQ(model->model.name, GetParam().name);
  const double billions = engine::parameter_counts(model->model).total() / 1e9;
  EXPECT_NEAR(billions, GetParam().billions, 0.01 * GetParam().billions);
}

// Two people wrote the same model down: the library's file and HuggingFace's.
TEST_P(HfConfig, AgreesWithTheLibrary) {
  const auto model = read_hf_config(fixtures() / "hf" / GetParam().name / "config.json");
  ASSERT_TRUE(model.ok());
  const auto listed = read_named(Library({paths::specs()}), "models", GetParam().name);
  ASSERT_TRUE(listed.ok()) << engine::to_text(listed.mistakes());
  engine::Scenario scenario;
  scenario.model = model->model;
  const engine::LeafTable& table = engine::leaf_table();
  const engine::Section& section = table.sections[std::size_t(table.find_section("model"))];
  for (std::size_t i = section.first_leaf; i < section.last_leaf; ++i) {
    const engine::Leaf& leaf = table.leaves[i];
    EXPECT_EQ(value_text(leaf, engine::get_leaf(scenario, leaf)),
              value_text(leaf, engine::get_leaf(listed->scenario, leaf)))
        << leaf.path;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Published, HfConfig,
    testing::Values(Published{"llama-3.1-8b", 8.03}, Published{"llama-3.1-70b", 70.6},
                    Published{"llama-3.2-1b", 1.24}, Published{"mistral-7b", 7.24},
                    Published{"mixtral-8x7b", 46.7}, Published{"qwen2.5-7b", 7.62},
                    Published{"qwen3-8b", 8.19}, Published{"qwen3-30b-a3b", 30.5},
                    Published{"gemma-2-9b", 9.24}, Published{"gemma-3-27b", 27.0},
                    Published{"phi-4", 14.66}, Published{"phi-2", 2.78}, Published{"gpt2", 0.124},
                    Published{"gpt2-xl", 1.558}, Published{"gpt-neox-20b", 20.55},
                    Published{"opt-6.7b", 6.66}, Published{"falcon-7b", 6.92},
                    Published{"falcon-40b", 41.3}, Published{"deepseek-v3", 671},
                    Published{"deepseek-v2-lite", 15.7}, Published{"gpt-oss-120b", 116.8},
                    Published{"olmo-2-7b", 7.3}, Published{"command-r-35b", 35.0},
                    Published{"starcoder2-15b", 15.96}, Published{"llama-4-scout", 107.8},
                    Published{"glm-4.5-air", 106.9}, Published{"gpt-j-6b", 6.05},
                    Published{"bamba-9b", 9.78}),
    [](const testing::TestParamInfo<Published>& tested) {
      std::string name = tested.param.name;
      for (char& c : name) c = c == '-' || c == '.' ? '_' : c;
      return name;
    });

// Layers that attend are counted in a list of all layers; without experts the shared ones are the MLP.
TEST(HfConfig, AHybridOfGraniteCountsItsLayers) {
  const auto model = parse_hf_config(
      R"({"architectures": ["GraniteMoeHybridForCausalLM"], "hidden_size": 64, "intermediate_size": 32,
          "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 4, "vocab_size": 99,
          "layer_types": ["mamba", "mamba", "attention", "mamba"], "mamba_d_head": "auto", "mamba_d_state": 16,
          "mamba_n_heads": 8, "num_local_experts": 0, "shared_intermediate_size": 48})",
      "m/config.json");
  ASSERT_TRUE(model.ok()) << engine::to_text(model.mistakes());
  const engine::LayerCounts layers = engine::layer_counts(model->model);
  EXPECT_EQ(layers.scanning, 3);
  EXPECT_EQ(layers.attending(), 1);
  EXPECT_EQ(model->model.scan.head_dim, 16);
  EXPECT_EQ(model->model.intermediate, 48);
  EXPECT_FALSE(model->model.is_moe());
}

std::string mistakes(const char* text) {
  const auto model = parse_hf_config(text, "m/config.json");
  return model ? "" : engine::to_text(model.mistakes());
}

TEST(HfConfigMistakes, UnknownArchitectureListsTheKnown) {
  const std::string text = mistakes("{\n  \"architectures\": [\"MambaForCausalLM\"]\n}\n");
  EXPECT_EQ(text.rfind("m/config.json:2:21: error: unknown architecture 'MambaForCausalLM'\n"
                       "  hint: known ones: BambaForCausalLM, BloomForCausalLM, ",
                       0),
            0U)
      << text;
  EXPECT_NE(text.find("LlamaForCausalLM"), std::string::npos);
}

TEST(HfConfigMistakes, EveryMissingKeyIsNamed) {
  EXPECT_EQ(mistakes("{\"architectures\": [\"GPT2LMHeadModel\"], \"n_layer\": 2, \"n_embd\": 8,\n"
                     " \"n_head\": \"two\", \"vocab_size\": 9}"),
            "m/config.json:2:12: error: n_head: 'two' is not a whole number\n"
            "m/config.json:1:1: error: the key 'n_positions' is missing\n"
            "  hint: GPT2LMHeadModel needs it\n");
}

TEST(HfConfigMistakes, SyntaxErrorsAreLocated) {
  const std::string text = mistakes("{\"architectures\": [\"LlamaForCausalLM\",\n");
  EXPECT_EQ(text.rfind("m/config.json:", 0), 0U);
  EXPECT_NE(text.find("this is not JSON"), std::string::npos) << text;
}

TEST(HfConfigMistakes, AFileWithoutArchitecturesIsNoModel) {
  EXPECT_EQ(mistakes("{\"hidden_size\": 8}"),
            "m/config.json:1:1: error: the key 'architectures' is missing\n"
            "  hint: it says how to read the others; is this a model's config.json?\n");
}

}  // namespace
}  // namespace sweep

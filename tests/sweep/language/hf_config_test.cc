#include "sweep/language/hf_config.h"

#include <gtest/gtest.h>

#include "engine/leaves/leaves.h"
#include "sweep/language/read_value.h"
#include "tests/support/calibrations.h"
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
    if (leaf.path == "model.hub") continue;  // a file does not say whose it is
    EXPECT_EQ(value_text(leaf, engine::get_leaf(scenario, leaf)),
              value_text(leaf, engine::get_leaf(listed->scenario, leaf)))
        << leaf.path;
  }
}

TEST(HfConfig, KnowsTheRepositoryWhereFoldersSayIt) {
  const std::pair<const char*, const char*> cases[] = {
      {"Qwen--Qwen3-8B/config.json", "Qwen/Qwen3-8B"},
      {"/hf/hub/models--Qwen--Qwen3-8B/snapshots/b968826d9c46dd60/config.json", "Qwen/Qwen3-8B"},
      {"qwen3-8b/config.json", ""},
      {"Qwen/Qwen3-8B/config.json", ""},
      {"a--b--c/config.json", ""},
      {"--Qwen3-8B/config.json", ""},
      {"Qwen--/config.json", ""},
      {"mine/snapshots/latest/config.json", ""},
      {"config.json", ""}};
  const std::string text =
      toys::file_text((fixtures() / "hf" / "qwen3-8b" / "config.json").string());
  for (const auto& [file, hub] : cases) {
    const auto model = parse_hf_config(text, file);
    ASSERT_TRUE(model.ok()) << engine::to_text(model.mistakes());
    EXPECT_EQ(model->model.hub, hub) << file;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Published, HfConfig,
    testing::Values(
        Published{"llama-3.1-8b", 8.03}, Published{"llama-3.1-70b", 70.6},
        Published{"llama-3.2-1b", 1.24}, Published{"mistral-7b", 7.24},
        Published{"mixtral-8x7b", 46.7}, Published{"qwen2.5-7b", 7.62}, Published{"qwen3-8b", 8.19},
        Published{"qwen3-30b-a3b", 30.5}, Published{"gemma-2-9b", 9.24},
        Published{"gemma-3-27b", 27.0}, Published{"phi-4", 14.66}, Published{"phi-2", 2.78},
        Published{"gpt2", 0.124}, Published{"gpt2-xl", 1.558}, Published{"gpt-neox-20b", 20.55},
        Published{"opt-6.7b", 6.66}, Published{"falcon-7b", 6.92}, Published{"falcon-40b", 41.3},
        Published{"deepseek-v3", 671}, Published{"deepseek-v2-lite", 15.7},
        Published{"gpt-oss-120b", 116.8}, Published{"olmo-2-7b", 7.3},
        Published{"command-r-35b", 35.0}, Published{"starcoder2-15b", 15.96},
        Published{"llama-4-scout", 107.8}, Published{"glm-4.5-air", 106.9},
        Published{"gpt-j-6b", 6.05}, Published{"minimax-m2", 229}, Published{"dbrx-132b", 131.6},
        Published{"qwen-72b", 72.3}, Published{"bamba-9b", 9.78},
        Published{"mamba-codestral-7b", 7.29}, Published{"nemotron-3-nano-30b-a3b", 31.6},
        Published{"qwen3-next-80b-a3b", 79.67}, Published{"qwen3.5-27b", 26.9},
        Published{"kimi-linear-48b-a3b", 49.1}),
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

// A file without `architectures` is read by its `model_type`.
TEST(HfConfig, ATypeStandsForItsArchitecture) {
  const auto layers = [](const char* kind) {
    const auto model = parse_hf_config(
        "{" + std::string(kind) +
            R"("hidden_size": 64, "num_hidden_layers": 3, "vocab_size": 99, "num_heads": 2, "head_dim": 64,
                               "num_attention_heads": 4, "intermediate_size": 32, "max_position_embeddings": 99})",
        "m/config.json");
    return model ? model->model.layers * (model->model.scans() ? -1 : 1) : 0;
  };
  EXPECT_EQ(layers(R"("architectures": ["Mamba2ForCausalLM"], )"), -3);
  EXPECT_EQ(layers(R"("model_type": "mamba2", )"), -3);
  EXPECT_EQ(layers(R"("model_type": "seed_oss", )"), 3);
  EXPECT_EQ(layers(R"("model_type": "no_such", )"), 0);
}

// Other spellings of structures above: what each file says of sizes, and the published size in billions.
struct Spelling {
  const char* config;
  double billions;
};

TEST(HfSpellings, HaveThePublishedSize) {
  const Spelling spellings[] = {
      // Mistral Small 3.1, without its images' encoder
      {R"("Mistral3ForConditionalGeneration"], "text_config": {"num_hidden_layers": 40, "hidden_size": 5120, "head_dim": 128,
          "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 32768, "vocab_size": 131072, "max_position_embeddings": 131072})",
       23.57},
      // LLaVA 1.5 7B: what is left out are the defaults of its text model
      {R"("LlavaForConditionalGeneration"], "text_config": {"max_position_embeddings": 4096, "vocab_size": 32064})",
       6.74},
      // Qwen 2.5 VL 7B and Qwen 3 VL 30B-A3B, their text models
      {R"("Qwen2_5_VLForConditionalGeneration"], "num_hidden_layers": 28, "hidden_size": 3584, "num_attention_heads": 28, "num_key_value_heads": 4,
          "intermediate_size": 18944, "vocab_size": 152064, "max_position_embeddings": 128000, "tie_word_embeddings": false, "use_sliding_window": false)",
       7.62},
      {R"("Qwen3VLMoeForConditionalGeneration"], "tie_word_embeddings": false, "text_config": {"num_hidden_layers": 48, "hidden_size": 2048, "head_dim": 128,
          "num_attention_heads": 32, "num_key_value_heads": 4, "intermediate_size": 6144, "moe_intermediate_size": 768, "num_experts": 128,
          "num_experts_per_tok": 8, "vocab_size": 151936, "max_position_embeddings": 262144})",
       30.5},
      // Granite 3.1 3B-A800M
      {R"("GraniteMoeForCausalLM"], "num_hidden_layers": 32, "hidden_size": 1536, "num_attention_heads": 24, "num_key_value_heads": 8, "intermediate_size": 512,
          "num_local_experts": 40, "num_experts_per_tok": 8, "vocab_size": 49155, "max_position_embeddings": 131072, "tie_word_embeddings": true)",
       3.3},
      // SmolLM3 3B, Seed-OSS 36B, OLMo 7B, OLMo 3 7B, StableLM 2 1.6B, GLM-4 9B
      {R"("SmolLM3ForCausalLM"], "num_hidden_layers": 36, "hidden_size": 2048, "num_attention_heads": 16, "num_key_value_heads": 4,
          "intermediate_size": 11008, "vocab_size": 128256, "max_position_embeddings": 65536)",
       3.08},
      {R"("SeedOssForCausalLM"], "num_hidden_layers": 64, "hidden_size": 5120, "head_dim": 128, "num_attention_heads": 80, "num_key_value_heads": 8,
          "intermediate_size": 27648, "vocab_size": 155136, "max_position_embeddings": 524288, "attention_bias": true)",
       36.15},
      {R"("OlmoForCausalLM"], "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "intermediate_size": 11008, "vocab_size": 50304,
          "max_position_embeddings": 2048)",
       6.89},
      {R"("Olmo3ForCausalLM"], "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "intermediate_size": 11008, "vocab_size": 100278,
          "max_position_embeddings": 65536, "sliding_window": 4096)",
       7.3},
      {R"("StableLmForCausalLM"], "num_hidden_layers": 24, "hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 32,
          "intermediate_size": 5632, "vocab_size": 100352, "max_position_embeddings": 4096, "use_qkv_bias": true)",
       1.64},
      {R"("Glm4ForCausalLM"], "num_hidden_layers": 40, "hidden_size": 4096, "head_dim": 128, "num_attention_heads": 32, "num_key_value_heads": 2,
          "intermediate_size": 13696, "vocab_size": 151552, "max_position_embeddings": 32768)",
       9.4},
      // ERNIE 4.5 21B-A3B, DeepSeek-MoE 16B
      {R"("Ernie4_5_MoeForCausalLM"], "num_hidden_layers": 28, "hidden_size": 2560, "num_attention_heads": 20, "num_key_value_heads": 4,
          "intermediate_size": 12288, "moe_intermediate_size": 1536, "moe_num_experts": 64, "moe_k": 6, "moe_num_shared_experts": 2,
          "moe_layer_start_index": 1, "vocab_size": 103424, "max_position_embeddings": 131072)",
       21.8},
      {R"("DeepseekForCausalLM"], "num_hidden_layers": 28, "hidden_size": 2048, "num_attention_heads": 16, "num_key_value_heads": 16,
          "intermediate_size": 10944, "moe_intermediate_size": 1408, "n_routed_experts": 64, "num_experts_per_tok": 6, "n_shared_experts": 2,
          "first_k_dense_replace": 1, "vocab_size": 102400, "max_position_embeddings": 4096)",
       16.4},
      // Qwen3.5 35B-A3B, its text model
      {R"("Qwen3_5MoeForConditionalGeneration"], "text_config": {"num_hidden_layers": 40, "hidden_size": 2048, "head_dim": 256, "num_attention_heads": 16,
          "num_key_value_heads": 2, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512, "num_experts": 256, "num_experts_per_tok": 8,
          "full_attention_interval": 4, "vocab_size": 248320, "max_position_embeddings": 262144, "tie_word_embeddings": false})",
       34.7},
      // GLM-4.7-Flash, and Kimi K2.5 within what also sees
      {R"("Glm4MoeLiteForCausalLM"], "num_hidden_layers": 47, "hidden_size": 2048, "num_attention_heads": 20, "num_key_value_heads": 20,
          "intermediate_size": 10240, "vocab_size": 154880, "max_position_embeddings": 202752, "n_routed_experts": 64, "n_shared_experts": 1,
          "num_experts_per_tok": 4, "moe_intermediate_size": 1536, "first_k_dense_replace": 1, "kv_lora_rank": 512, "q_lora_rank": 768,
          "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256, "tie_word_embeddings": false)",
       29.94},
      {R"("KimiK25ForConditionalGeneration"], "tie_word_embeddings": false, "text_config": {"num_hidden_layers": 61, "hidden_size": 7168,
          "num_attention_heads": 64, "num_key_value_heads": 64, "intermediate_size": 18432, "vocab_size": 163840,
          "max_position_embeddings": 262144, "n_routed_experts": 384, "n_shared_experts": 1, "num_experts_per_tok": 8,
          "moe_intermediate_size": 2048, "first_k_dense_replace": 1, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
          "qk_rope_head_dim": 64, "v_head_dim": 128})",
       1026},
      // EXAONE 4.0 32B, Apertus 8B, dots.llm1 (142B of 14B active)
      {R"("Exaone4ForCausalLM"], "num_hidden_layers": 64, "hidden_size": 5120, "head_dim": 128, "num_attention_heads": 40, "num_key_value_heads": 8,
          "intermediate_size": 27392, "vocab_size": 102400, "max_position_embeddings": 131072, "sliding_window": 4096,
          "sliding_window_pattern": "LLLG", "tie_word_embeddings": false)",
       32.0},
      {R"("ApertusForCausalLM"], "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
          "intermediate_size": 21504, "vocab_size": 131072, "max_position_embeddings": 65536, "tie_word_embeddings": false)",
       8.05},
      {R"("Dots1ForCausalLM"], "num_hidden_layers": 62, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 32,
          "intermediate_size": 10944, "moe_intermediate_size": 1408, "n_routed_experts": 128, "num_experts_per_tok": 6, "n_shared_experts": 2,
          "first_k_dense_replace": 1, "vocab_size": 152064, "max_position_embeddings": 32768, "tie_word_embeddings": false)",
       142.8},
      // StarCoder 15B, MPT 7B
      {R"("GPTBigCodeForCausalLM"], "n_layer": 40, "n_embd": 6144, "n_head": 48, "n_inner": 24576, "vocab_size": 49152, "n_positions": 8192)",
       15.5},
      {R"("MPTForCausalLM"], "n_layers": 32, "d_model": 4096, "n_heads": 32, "expansion_ratio": 4, "vocab_size": 50432, "max_seq_len": 2048,
          "no_bias": true, "attn_config": {"alibi": true})",
       6.65},
  };
  for (const Spelling& spelling : spellings) {
    const auto model = parse_hf_config(std::string("{\"architectures\": [") + spelling.config + "}",
                                       "m/config.json");
    ASSERT_TRUE(model.ok()) << spelling.config << engine::to_text(model.mistakes());
    const double billions = engine::parameter_counts(model->model).total() / 1e9;
    EXPECT_NEAR(billions, spelling.billions, 0.01 * spelling.billions) << spelling.config;
  }
}

std::string mistakes(const char* text) {
  const auto model = parse_hf_config(text, "m/config.json");
  return model ? "" : engine::to_text(model.mistakes());
}

TEST(HfConfigMistakes, UnknownArchitectureListsTheKnown) {
  const std::string text = mistakes("{\n  \"architectures\": [\"RwkvForCausalLM\"]\n}\n");
  EXPECT_EQ(text.rfind("m/config.json:2:21: error: unknown architecture 'RwkvForCausalLM'\n"
                       "  hint: known ones: ApertusForCausalLM, ArceeForCausalLM, ",
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

// Layers that slide above layers that do not: neither all nor none of them slide.
TEST(HfConfigMistakes, WindowsOfUpperLayersAreRefused) {
  const auto window = [](const std::string& full) {
    const std::string text =
        R"({"architectures": ["Qwen2ForCausalLM"], "num_hidden_layers": 4, "hidden_size": 128, "num_attention_heads": 4,
            "intermediate_size": 256, "vocab_size": 1000, "max_position_embeddings": 4096, "sliding_window": 512,
            "use_sliding_window": true, "max_window_layers": )" +
        full + "}";
    const auto model = parse_hf_config(text, "m/config.json");
    return model ? std::to_string(model->model.window) : model.mistakes().front().what;
  };
  EXPECT_EQ(window("4"), "0");
  EXPECT_EQ(window("0"), "512");
  EXPECT_EQ(
      window("2"),
      "max_window_layers: full attention in the first layers and a window in the others is not "
      "modelled");
}

// A list says of each layer whether it slides; a pattern with one full layer in so many is all that a model can say.
TEST(HfConfigMistakes, UnevenPatternsOfWindowsAreRefused) {
  const auto every = [](const std::string& types) {
    const auto model = parse_hf_config(
        R"({"architectures": ["Exaone4ForCausalLM"], "num_hidden_layers": 6, "hidden_size": 128, "num_attention_heads": 4,
            "intermediate_size": 256, "vocab_size": 1000, "max_position_embeddings": 4096, "sliding_window": 512, )" +
            types + "}",
        "m/config.json");
    return model ? std::to_string(model->model.full_attention_every)
                 : model.mistakes().front().what;
  };
  const auto list = [](const std::string& layers) {
    std::string types;
    for (const char layer : layers) {
      types += (types.empty() ? "" : ", ") +
               std::string(layer == 'F' ? "\"full_attention\"" : "\"sliding_attention\"");
    }
    return "\"layer_types\": [" + types + "]";
  };
  EXPECT_EQ(every(R"("sliding_window_pattern": "LLG")"), "3");
  EXPECT_EQ(every(R"("sliding_window_pattern": 2)"), "2");
  EXPECT_EQ(every(list("SSFSSF")), "3");
  EXPECT_EQ(every(list("SSSSFS")), "5");
  EXPECT_EQ(every(list("SSSSSS")), "0");
  EXPECT_EQ(every(list("FFFFFF")), "1");
  const std::string refused =
      "layer_types: full attention in layers that no even pattern has is not modelled";
  EXPECT_EQ(every(list("FSSFSS")), refused);  // two of six, and not all
  EXPECT_EQ(every(list("SSFSFF")), refused);
}

TEST(HfConfigMistakes, SyntaxErrorsAreLocated) {
  const std::string text = mistakes("{\"architectures\": [\"LlamaForCausalLM\",\n");
  EXPECT_EQ(text.rfind("m/config.json:", 0), 0U);
  EXPECT_NE(text.find("this is not JSON"), std::string::npos) << text;
}

// What a model cannot say is said, and not left out.
TEST(HfConfigMistakes, LayersThatAreNotModelledAreNamed) {
  EXPECT_EQ(mistakes("{\"architectures\": [\"FalconH1ForCausalLM\"]}"),
            "m/config.json:1:20: error: architecture 'FalconH1ForCausalLM' is not modelled: it has "
            "layers that attend and scan side by side\n"
            "  hint: scans that are modelled are those of Mamba-2 (Mamba2ForCausalLM, "
            "BambaForCausalLM, GraniteMoeHybridForCausalLM, NemotronHForCausalLM) and delta rules "
            "(Qwen3NextForCausalLM, Qwen3_5ForConditionalGeneration, KimiLinearForCausalLM)\n");
  EXPECT_EQ(mistakes("{\"architectures\": [\"DeepseekV32ForCausalLM\"]}"),
            "m/config.json:1:20: error: architecture 'DeepseekV32ForCausalLM' is not modelled: it "
            "has attention to those tokens alone that an indexer picks\n"
            "  hint: with attention to all tokens it is 'model: {hf_config: ...}' with its "
            "'architectures' changed to DeepseekV3ForCausalLM: an upper bound of its time at long "
            "contexts\n");
  for (const char* name : {"MambaForCausalLM", "JambaForCausalLM", "Zamba2ForCausalLM",
                           "Gemma3nForConditionalGeneration", "DeciLMForCausalLM"}) {
    const std::string text =
        mistakes(("{\"architectures\": [\"" + std::string(name) + "\"]}").c_str());
    EXPECT_NE(text.find("is not modelled: it has"), std::string::npos) << text;
  }
}

// What a delta rule of another kind has is said, and so is a number that would divide by nothing.
TEST(HfConfigMistakes, DeltaRulesThatAreNotModelledAreNamed) {
  const auto what = [](const std::string& architecture, const std::string& more) {
    const auto model = parse_hf_config(
        R"({"architectures": [")" + architecture +
            R"("], "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4,
            "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 16, "intermediate_size": 32,
            "vocab_size": 99, "max_position_embeddings": 512, )" +
            more + "}",
        "m/config.json");
    return model ? std::to_string(model->model.scan.attention_layers)
                 : model.mistakes().front().what;
  };
  const std::string kimi = "KimiLinearForCausalLM", qwen = "Qwen3NextForCausalLM";
  const std::string two = R"("linear_attn_config": {"full_attn_layers": [2, 4]})";
  EXPECT_EQ(what(kimi, two), "2");
  EXPECT_EQ(what(kimi, R"("x": 1)"),
            "linear_attn_config: it says which layers attend, and is missing");
  EXPECT_EQ(what(kimi, R"("linear_attn_config": {"use_full_rank_gate": true})"),
            "use_full_rank_gate: a gate of full rank beside decays of a lower one is not modelled");
  EXPECT_EQ(what(kimi, two + R"(, "mla_use_output_gate": true)"),
            "mla_use_output_gate: a gate on latent attention is not modelled");
  EXPECT_EQ(what(qwen, R"("layer_types": ["linear_attention", "full_attention"])"), "1");
  EXPECT_EQ(what(qwen, R"("full_attention_interval": 2)"), "2");
  EXPECT_EQ(what(qwen, R"("linear_num_key_heads": 0)"), "the model's 'scan.groups' comes out as 0");
  EXPECT_EQ(what(qwen, R"("partial_rotary_factor": 1.5)"),
            "partial_rotary_factor: '1.5' is no number from 0 to 1");
  EXPECT_EQ(
      what(
          qwen,
          R"("num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 8, "mlp_only_layers": [1])"),
      "mlp_only_layers: layers without experts at stated places are not modelled");
}

TEST(HfConfigMistakes, BlocksThatAreNotModelledAreNamed) {
  const auto what = [](const std::string& more) {
    const auto model = parse_hf_config(
        R"({"architectures": ["NemotronHForCausalLM"], "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 32,
            "vocab_size": 99, "max_position_embeddings": 99, "n_routed_experts": 8, "num_experts_per_tok": 2,
            "moe_intermediate_size": 16)" +
            more + "}",
        "m/config.json");
    return model ? "" : model.mistakes().front().what;
  };
  EXPECT_EQ(what(R"(, "hybrid_override_pattern": "M-M*-")"), "");
  EXPECT_EQ(what(""), "hybrid_override_pattern: it says what each block is, and is missing");
  EXPECT_EQ(what(R"(, "hybrid_override_pattern": "MXM")"),
            "hybrid_override_pattern: blocks are M, *, - or E");
  EXPECT_EQ(
      what(R"(, "hybrid_override_pattern": "M-ME")"),
      "hybrid_override_pattern: blocks of MLPs beside blocks of experts, or more of them than "
      "of mixers, are not modelled");
  EXPECT_EQ(what(R"(, "hybrid_override_pattern": "MEM*", "moe_latent_size": 8)"),
            "moe_latent_size: experts of a narrower latent are not modelled");
}

TEST(HfConfigMistakes, AFileWithoutArchitecturesIsNoModel) {
  EXPECT_EQ(mistakes("{\"hidden_size\": 8}"),
            "m/config.json:1:1: error: the key 'architectures' is missing\n"
            "  hint: it says how to read the others; is this a model's config.json?\n");
}

}  // namespace
}  // namespace sweep

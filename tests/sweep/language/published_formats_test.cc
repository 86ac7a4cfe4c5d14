// Whoever names a model and no formats has the formats it is published in.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_folder.h"
#include "tests/sweep/sweep_fixture.h"

namespace sweep {
namespace {

using Names = std::vector<std::string>;

class PublishedFormatsTest : public testing::Test {
 protected:
  engine::Result<SweepSpec> read(const std::string& text) {
    return read_sweep_text(text, (folder_.path() / "sweep.yaml").string(),
                           Library({paths::specs()}), InertAxes::allowed);
  }
  std::vector<engine::Scenario> points_of(const std::string& text) {
    const auto spec = read(text);
    if (!spec) {
      ADD_FAILURE() << text << engine::to_text(spec.mistakes());
      return {};
    }
    // Once its names are looked up it says the same.
    const auto again = read(spec->resolved);
    EXPECT_TRUE(again.ok()) << spec->resolved;
    const auto points = admitted(*spec);
    if (again.ok()) {
      const auto resolved = admitted(*again);
      EXPECT_EQ(points.size(), resolved.size());
      for (std::size_t i = 0; i < std::min(points.size(), resolved.size()); ++i) {
        EXPECT_EQ(points[i].quant, resolved[i].quant) << text;
      }
    }
    return points;
  }

  static std::string said(const engine::Quantization& quant) {
    return std::string(engine::name_of(quant.weights)) + " " +
           std::string(engine::name_of(quant.activations)) + " " + std::to_string(quant.group) +
           " " + std::string(engine::name_of(quant.scope)) + " kv " +
           std::string(engine::name_of(quant.kv));
  }
  Names formats_of(const std::string& text) {
    Names names;
    for (const engine::Scenario& point : points_of(text)) names.push_back(said(point.quant));
    return names;
  }
  // Of another deployment; "-" where there is none.
  Names formats_of(engine::Role engine::Scenario::*role, const std::string& text) {
    Names names;
    for (const engine::Scenario& point : points_of(text)) {
      const engine::Role& other = point.*role;
      names.push_back(other.present ? said(other.deployment.quant) : "-");
    }
    return names;
  }
  std::string mistake_in(const std::string& text) {
    const auto spec = read(text);
    return spec ? "" : spec.mistakes().front().what;
  }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_.path() / name) << text;
  }

  tests::TemporaryFolder folder_;
  const std::string wide_ = "bf16 bf16 128 all kv bf16";
  const std::string blocks_ = "fp8 fp8 128 all kv bf16";
  const std::string experts_ = "fp4 bf16 32 experts kv bf16";
};

TEST_F(PublishedFormatsTest, GoWithTheirModels) {
  const std::string start = "base: {device: h100-sxm, ";
  EXPECT_EQ(formats_of(start + "model: gpt-oss-120b}\n"), Names{experts_});
  EXPECT_EQ(formats_of(start + "model: {from: deepseek-v3, layers: 4}}\n"), Names{blocks_});
  EXPECT_EQ(formats_of(start + "model: llama-3.1-8b}\n"), Names{wide_});
  write("mine.yaml", "from: kimi-k2\nlayers: 8\n");
  EXPECT_EQ(formats_of(start + "model: mine.yaml}\n"), Names{blocks_});
  write("wider.yaml", "from: kimi-k2\nquant: {weights: bf16, kv: fp8}\n");
  EXPECT_EQ(formats_of(start + "model: wider.yaml}\n"), Names{"bf16 bf16 128 all kv fp8"});
  // A file that leaves weights alone alters what it is made from.
  write("kv.yaml", "from: kimi-k2\nquant.kv: fp8\n");
  EXPECT_EQ(formats_of(start + "model: {from: {from: kv.yaml, layers: 4}}}\n"),
            Names{"fp8 fp8 128 all kv fp8"});
}

TEST_F(PublishedFormatsTest, GoWithThemWhereverTheyAreListed) {
  const std::string start = "base: {device: h100-sxm}\naxes:\n";
  const Names all{experts_, wide_, blocks_};
  const std::string models = "[gpt-oss-20b, llama-3.1-8b, {from: deepseek-r1, layers: 4}]";
  EXPECT_EQ(formats_of(start + "  - model: " + models + "\n"), all);
  EXPECT_EQ(formats_of(start + "  - model: {values: " + models + "}\n"), all);
  EXPECT_EQ(formats_of(start + "  - product: [model: " + models + "]\n"), all);
  EXPECT_EQ(formats_of(start + "  - zip: {step.batch: [1, 2, 3], model: " + models + "}\n"), all);
  EXPECT_EQ(
      formats_of(start + "  - concat:\n"
                         "      - {name: a, base: {model: gpt-oss-20b}, axes: [step.batch: [1]]}\n"
                         "      - {name: b, axes: [model: [llama-3.1-8b, deepseek-r1]]}\n"),
      all);
  for (const char* method : {"random", "latin_hypercube", "sobol"}) {
    const auto points = points_of(start + "  - sample: {" + method +
                                  ": 16, of: {step.batch: [1, 64], model: [gpt-oss-20b, "
                                  "llama-3.1-8b, deepseek-v3]}}\n");
    ASSERT_EQ(points.size(), 16u);
    for (const auto& point : points) {
      const std::string& name = point.model.name;
      EXPECT_EQ(said(point.quant), name == "gpt-oss-20b"   ? experts_
                                   : name == "deepseek-v3" ? blocks_
                                                           : wide_)
          << method;
    }
  }
}

// A whole model takes nothing of what the base's is in; some fields of it change nothing of that.
TEST_F(PublishedFormatsTest, DoNotOutliveTheirModel) {
  const std::string start = "base: {device: h100-sxm, model: deepseek-v3}\naxes:\n";
  EXPECT_EQ(formats_of(start + "  - model: [llama-3.1-8b, {layers: 4}, gpt-oss-20b]\n"),
            (Names{wide_, blocks_, experts_}));
  EXPECT_EQ(formats_of(start + "  - step.batch: [1, 2]\n"
                               "  - model: {values: [llama-3.1-8b], when: step.batch == 1}\n"),
            (Names{wide_, blocks_}));
  write("part.yaml", "base: {device: h100-sxm, model: deepseek-v3}\n");
  EXPECT_EQ(formats_of("include: part.yaml\nbase: {model: llama-3.1-8b}\n"), Names{wide_});
  EXPECT_EQ(formats_of("include: part.yaml\naxes: [model: [llama-3.1-8b, {layers: 4}]]\n"),
            (Names{wide_, blocks_}));
}

TEST_F(PublishedFormatsTest, CountOnlyWhereNoneAreStated) {
  const std::string start = "base: {device: h100-sxm, model: deepseek-v3, ";
  EXPECT_EQ(formats_of(start + "quant: {weights: int4}}\n"), Names{"int4 bf16 128 all kv bf16"});
  // Devices without such arithmetic run narrow weights with wider inputs.
  EXPECT_EQ(formats_of(start + "quant.activations: bf16}\n"), Names{"fp8 bf16 128 all kv bf16"});
  EXPECT_EQ(formats_of(start + "step.batch: 1}\naxes: [quant.weights: [bf16, fp8]]\n"),
            (Names{wide_, "fp8 bf16 128 all kv bf16"}));
  EXPECT_EQ(formats_of(start + "step.batch: 1}\naxes:\n  - zip:\n"
                               "      model: [gpt-oss-20b, llama-3.1-8b]\n"
                               "      quant: [{weights: int4}, {weights: fp8}]\n"),
            (Names{"int4 bf16 128 all kv bf16", "fp8 bf16 128 all kv bf16"}));
  // The cache is another matter, and so are scales and scope.
  EXPECT_EQ(formats_of(start + "quant: {kv: fp8}}\n"), Names{"fp8 fp8 128 all kv fp8"});
  EXPECT_EQ(formats_of(start + "quant.group: 32}\naxes: [model: [deepseek-v3, llama-3.1-8b]]\n"),
            (Names{"fp8 fp8 32 all kv bf16", "bf16 bf16 32 all kv bf16"}));
  EXPECT_EQ(formats_of(start + "step.batch: 1}\naxes: [quant: [{kv: fp8}, {kv: bf16}], "
                               "model: [deepseek-v3, llama-3.1-8b]]\n"),
            (Names{"fp8 fp8 128 all kv fp8", "bf16 bf16 128 all kv fp8", blocks_, wide_}));
  // Training takes wider weights than are published.
  EXPECT_EQ(formats_of(start + "task: train}\n"), Names{wide_});
}

// Whatever else a sweep asks for, a step is the step that it is alone.
TEST_F(PublishedFormatsTest, OfPointsThatTrainAreWideAndOfNoOthers) {
  const std::string start = "base: {device: h200-sxm, train.sequence: 1024, ";
  EXPECT_EQ(formats_of(start + "model: deepseek-v3}\naxes: [task: [step, train, request]]\n"),
            (Names{blocks_, wide_, blocks_}));
  EXPECT_EQ(formats_of(start + "task: train}\naxes:\n"
                               "  - task: [step, train]\n"
                               "  - model: [gpt-oss-20b, llama-3.1-8b]\n"),
            (Names{experts_, wide_, wide_, wide_}));
  EXPECT_EQ(
      formats_of(start + "task: step, model: deepseek-v3}\naxes:\n"
                         "  - concat: [{name: a, base: {task: train}, axes: [step.batch: [1]]},"
                         " {name: b, axes: [step.batch: [1]]}]\n"),
      (Names{wide_, blocks_}));
  EXPECT_EQ(formats_of(start + "step.batch: 1}\naxes:\n"
                               "  - model: [deepseek-v3, llama-3.1-8b]\n"
                               "  - task: [step, train]\n"),
            (Names{blocks_, wide_, wide_, wide_}));
  // What is stated counts for both.
  EXPECT_EQ(formats_of(start + "model: deepseek-v3, quant.kv: fp8}\naxes: [task: [step, train]]\n"),
            (Names{"fp8 fp8 128 all kv fp8", "bf16 bf16 128 all kv fp8"}));
  EXPECT_EQ(formats_of(start + "model: deepseek-v3, quant: {weights: fp8, activations: fp8}}\n"
                               "axes: [task: [step, train]]\n"),
            (Names{blocks_, blocks_}));
  // Derivations of the sweep see them.
  EXPECT_EQ(formats_of(start + "model: deepseek-v3}\naxes: [task: [step, train]]\n"
                               "derive: {quant.kv: \"quant.weights == 'fp8' ? 'fp8' : 'bf16'\"}\n"),
            (Names{"fp8 fp8 128 all kv fp8", wide_}));
}

// Else a point without a statement would have formats that nobody meant.
TEST_F(PublishedFormatsTest, AreNotMixedWithStatementsAboutSomePoints) {
  const std::string said =
      "formats are stated for some points only, and a model here is published in formats of its "
      "own";
  const std::string start = "base: {device: h100-sxm, model: deepseek-v3}\naxes:\n  - ";
  EXPECT_EQ(mistake_in(start + "quant: [{}, {weights: int4}]\n"), said);
  EXPECT_EQ(mistake_in(start + "step.batch: [1, 2]\n  - quant.weights: {values: [int4, bf16], "
                               "when: step.batch == 1}\n"),
            said);
  EXPECT_EQ(mistake_in(start + "concat: [{name: a, base: {quant.weights: bf16}, axes: [step.batch: "
                               "[1]]}, {name: b, axes: [step.batch: [1]]}]\n"),
            said);
  EXPECT_EQ(mistake_in(start + "concat: [{name: a, base: {quant.weights: bf16}, axes: [step.batch: "
                               "[1]]}, {name: b, axes: [quant: [{weights: fp8}]]}]\n"),
            "");
  EXPECT_EQ(mistake_in("base: {device: h100-sxm, model: llama-3.1-8b}\n"
                       "axes: [quant: [{}, {weights: int4}]]\n"),
            "");
}

TEST_F(PublishedFormatsTest, OfOtherDeploymentsGoWithTheirOwnModels) {
  const auto draft = &engine::Scenario::draft;
  const std::string start = "base: {task: request, device: h200-sxm, model: ";
  EXPECT_EQ(formats_of(draft, start + "deepseek-v3, speculation: {method: draft_model, draft: "
                                      "llama-3.2-1b, tokens: 2}}\n"),
            Names{wide_});
  EXPECT_EQ(
      formats_of(draft, start + "llama-3.1-70b, speculation: {method: draft_model, tokens: 2}}\n"
                                "axes: [speculation.draft: [gpt-oss-20b, llama-3.2-1b]]\n"),
      (Names{experts_, wide_}));
  const auto prefill = &engine::Scenario::prefill;
  EXPECT_EQ(formats_of(prefill, start + "deepseek-v3, prefill: {parallel: {tp: 8}}}\n"),
            Names{blocks_});
  EXPECT_EQ(formats_of(prefill, start + "deepseek-v3}\naxes: [prefill: [none, {}, {model: "
                                        "llama-3.1-8b}]]\n"),
            (Names{"-", blocks_, wide_}));
  EXPECT_EQ(formats_of(prefill, start + "deepseek-v3, prefill: {quant: {weights: bf16}}}\n"),
            Names{wide_});
  // A role that states its weights has nothing of what the main one's model brings, wherever it says so.
  const std::string drafted = start + "gpt-oss-20b, draft: {model: llama-3.2-1b";
  EXPECT_EQ(formats_of(draft, drafted + ", quant: {weights: fp8, activations: fp8}}}\n"),
            Names{blocks_});
  EXPECT_EQ(formats_of(draft, drafted + "}}\naxes: [draft.quant.weights: [bf16, fp8]]\n"),
            (Names{wide_, "fp8 bf16 128 all kv bf16"}));
  EXPECT_EQ(formats_of(prefill, start + "gpt-oss-20b}\naxes: [prefill: [{}, {quant: {weights: "
                                        "fp8}}]]\n"),
            (Names{experts_, "fp8 bf16 128 all kv bf16"}));
  // What is stated of the main deployment counts for all, unless they state their own.
  EXPECT_EQ(formats_of(draft, start + "llama-3.1-70b, quant: {weights: fp8}, speculation: {method: "
                                      "draft_model, draft: gpt-oss-20b, tokens: 2}}\n"),
            Names{"fp8 bf16 128 all kv bf16"});
}

TEST_F(PublishedFormatsTest, OfAConfigFileCountOnAnAxisAsWell) {
  write("config.json",
        R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64,
"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 128,
"vocab_size": 1000, "max_position_embeddings": 2048, "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 64}})");
  EXPECT_EQ(formats_of("base: {device: h100-sxm}\n"
                       "axes: [model: [{hf_config: config.json}, llama-3.1-8b, gpt-oss-20b]]\n"),
            (Names{"int4 bf16 64 all kv bf16", wide_, experts_}));
}

TEST_F(PublishedFormatsTest, OfAFileAreReadWithCare) {
  write("odd.yaml", "from: llama-3.1-8b\nquant: {weights: fp9}\n");
  EXPECT_NE(mistake_in("base: {device: h100-sxm, model: odd.yaml}\n").find("fp9"),
            std::string::npos);
  write("odd.yaml", "from: llama-3.1-8b\nquant: fp8\n");
  EXPECT_NE(mistake_in("base: {device: h100-sxm, model: odd.yaml}\n"), "");
  write("odd.yaml", "from: llama-3.1-8b\nquant: {colour: red}\n");
  EXPECT_NE(mistake_in("base: {device: h100-sxm, model: odd.yaml}\n").find("colour"),
            std::string::npos);
}

}  // namespace
}  // namespace sweep

// Scenarios stated one by one are the points of a sweep that zips the same values.
#include "sweep/language/batch_reader.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"
#include "tests/sweep/sweep_fixture.h"

namespace sweep {
namespace {

constexpr const char* kBase = "{task: step, model: llama-3.1-8b, step: {phase: decode}}";

Library shipped() { return Library({paths::specs()}); }

Node scalar(std::string text, int scenario) {
  return {.kind = Node::Kind::scalar,
          .text = std::move(text),
          .where = {"scenario " + std::to_string(scenario), 0, 0}};
}

BatchField field(const std::string& path, const std::vector<std::string>& values,
                 std::vector<std::uint32_t> order) {
  BatchField made;
  made.order = std::move(order);
  made.path_and_values.key = scalar(path, 0);
  made.path_and_values.value.kind = Node::Kind::sequence;
  for (std::size_t i = 0; i < values.size(); ++i) {
    made.path_and_values.value.items.push_back(scalar(values[i], int(i)));
  }
  return made;
}

TEST(BatchReader, ScenariosAreThePointsOfAZip) {
  auto reader = BatchReader::open(kBase, "base", shipped());
  ASSERT_TRUE(reader) << engine::to_text(reader.mistakes());
  const auto batch = reader->read({field("device", {"h100-sxm", "l4"}, {0, 1, 1, 0}),
                                   field("step.batch", {"4", "8", "2"}, {2, 0, 1, 2})});
  ASSERT_TRUE(batch) << engine::to_text(batch.mistakes());
  const auto sweep = read_sweep_text(
      "base: " + std::string(kBase) +
          "\naxes: [{zip: {device: [h100-sxm, l4, l4, h100-sxm], step.batch: [2, 4, 8, 2]}}]",
      "zip.yaml", shipped());
  ASSERT_TRUE(sweep) << engine::to_text(sweep.mistakes());
  ASSERT_EQ(batch->size(), sweep->space.size());
  PointBuilder one(*batch), other(sweep->space);
  for (std::uint64_t i = 0; i < batch->size(); ++i) {
    Point a, b;
    ASSERT_EQ(one.build(i, a), Admission::admitted);
    ASSERT_EQ(other.build(i, b), Admission::admitted);
    EXPECT_EQ(a.key, b.key) << i;
    EXPECT_EQ(a.scenario.step.batch, b.scenario.step.batch) << i;
  }
}

// The hosts of each scenario's deployments, in a batch over this base.
std::vector<std::string> hosts_of(const std::string& base, const std::vector<BatchField>& fields) {
  auto reader = BatchReader::open(base, "base", shipped());
  if (!reader) return {engine::to_text(reader.mistakes())};
  const auto batch = reader->read(fields);
  if (!batch) return {engine::to_text(batch.mistakes())};
  std::vector<std::string> hosts;
  PointBuilder points(*batch);
  for (std::uint64_t i = 0; i < batch->size(); ++i) {
    Point point;
    EXPECT_EQ(points.build(i, point), Admission::admitted);
    const engine::Role& prefill = point.scenario.prefill;
    const engine::Role& rollout = point.scenario.rollout;
    hosts.push_back(point.scenario.host.name +
                    (prefill.present ? " " + prefill.deployment.host.name : "") +
                    (rollout.present ? " " + rollout.deployment.host.name : ""));
  }
  return hosts;
}

TEST(BatchReader, EnginesBringTheirHostsAsOnAnAxis) {
  using Hosts = std::vector<std::string>;
  const std::string base = "{device: h100-sxm, model: llama-3.1-8b";
  const BatchField engines = field("serving", {"sglang", "vllm-v0"}, {0, 1, 0});
  EXPECT_EQ(hosts_of(base + "}", {engines}), (Hosts{"sglang", "vllm-v0", "sglang"}));
  EXPECT_EQ(hosts_of(base + ", serving: vllm-v1, host: {launch_cost: 5 us}}", {engines}),
            (Hosts{"sglang", "vllm-v0", "sglang"}));
  EXPECT_EQ(hosts_of(base + ", host: none}", {engines}), (Hosts{"none", "none", "none"}));
  EXPECT_EQ(hosts_of(base + "}", {engines, field("host", {"none", "vllm-v1"}, {0, 1, 1})}),
            (Hosts{"none", "vllm-v1", "vllm-v1"}));
  EXPECT_EQ(hosts_of(base + ", serving: vllm-v1, prefill: {}}",
                     {field("prefill.serving", {"sglang"}, {0, 0})}),
            (Hosts{"vllm-v1 sglang", "vllm-v1 sglang"}));
  const std::string training = base + ", task: train, train: {from: megatron}}";
  EXPECT_EQ(hosts_of(training, {field("train.rollout.prompts", {"8", "16"}, {0, 1})}),
            (Hosts{"megatron default", "megatron default"}));
  EXPECT_EQ(hosts_of(training, {field("train.rollout.prompts", {"8"}, {0}),
                                field("rollout.serving", {"sglang"}, {0})}),
            (Hosts{"megatron sglang"}));
}

TEST(BatchReader, ModelsBringTheirFormatsAsOnAnAxis) {
  using Formats = std::vector<std::string>;
  const auto formats_of = [](const std::string& base, const std::vector<BatchField>& fields) {
    auto reader = BatchReader::open(base, "base", shipped());
    if (!reader) return Formats{engine::to_text(reader.mistakes())};
    const auto batch = reader->read(fields);
    if (!batch) return Formats{engine::to_text(batch.mistakes())};
    Formats formats;
    PointBuilder points(*batch);
    for (std::uint64_t i = 0; i < batch->size(); ++i) {
      Point point;
      EXPECT_EQ(points.build(i, point), Admission::admitted);
      const engine::Quantization& quant = point.scenario.quant;
      formats.push_back(std::string(engine::name_of(quant.weights)) + " " +
                        std::string(engine::name_of(quant.activations)));
    }
    return formats;
  };
  const BatchField models = field("model", {"gpt-oss-20b", "llama-3.1-8b"}, {0, 1, 0});
  for (const char* model : {"llama-3.1-8b", "deepseek-v3"}) {
    const std::string base = std::string("{device: h100-sxm, model: ") + model;
    EXPECT_EQ(formats_of(base + "}", {models}), (Formats{"fp4 bf16", "bf16 bf16", "fp4 bf16"}));
    EXPECT_EQ(formats_of(base + ", quant: {weights: int4}}", {models}),
              (Formats{"int4 bf16", "int4 bf16", "int4 bf16"}));
    EXPECT_EQ(formats_of(base + "}", {models, field("quant.weights", {"fp8"}, {0, 0, 0})}),
              (Formats{"fp8 bf16", "fp8 bf16", "fp8 bf16"}));
  }
  EXPECT_EQ(
      formats_of("{device: h100-sxm, model: deepseek-v3}", {field("model", {"llama-3.1-8b"}, {0})}),
      (Formats{"bf16 bf16"}));
  EXPECT_EQ(formats_of("{device: h100-sxm, model: deepseek-v3}", {field("step.batch", {"1"}, {0})}),
            (Formats{"fp8 fp8"}));
}

// A scenario is what it is alone, whatever the others of its batch are for: training takes wider weights than are published.
TEST(BatchReader, ScenariosThatTrainHaveTheUsualFormats) {
  const std::string narrow = "fp8", wide = "bf16";
  const auto weights_in = [](BatchReader& reader, const std::vector<BatchField>& fields) {
    std::vector<std::string> weights;
    const auto batch = reader.read(fields);
    if (!batch) return std::vector<std::string>{engine::to_text(batch.mistakes())};
    PointBuilder points(*batch);
    for (std::uint64_t i = 0; i < batch->size(); ++i) {
      Point point;
      points.build(i, point);
      weights.emplace_back(engine::name_of(point.scenario.quant.weights));
    }
    return weights;
  };
  using Weights = std::vector<std::string>;
  const BatchField model = field("model", {"deepseek-v3"}, {0, 0});
  const BatchField both = field("task", {"step", "train"}, {0, 1});
  for (const std::string base : {"{device: h100-sxm, model: deepseek-v3}",
                                 "{device: h100-sxm, model: deepseek-v3, task: train}"}) {
    auto reader = BatchReader::open(base, "base", shipped());
    ASSERT_TRUE(reader) << engine::to_text(reader.mistakes());
    const bool trains = base.find("train") != std::string::npos;
    EXPECT_EQ(weights_in(*reader, {both}), (Weights{narrow, wide})) << base;
    EXPECT_EQ(weights_in(*reader, {both, field("quant.weights", {"int8"}, {0, 0})}),
              (Weights{"int8", "int8"}));
    EXPECT_EQ(weights_in(*reader, {field("step.batch", {"1"}, {0})}),
              Weights{trains ? wide : narrow});
    EXPECT_EQ(weights_in(*reader, {field("task", {"request"}, {0})}), Weights{narrow});
    EXPECT_EQ(weights_in(*reader, {}), Weights{trains ? wide : narrow});
  }
  auto reader = BatchReader::open("{device: h100-sxm}", "base", shipped());
  EXPECT_EQ(weights_in(*reader, {both, model}), (Weights{narrow, wide}));
}

TEST(BatchReader, AFileThatIsWrittenAgainOrGoneIsNoticed) {
  namespace fs = std::filesystem;
  const tests::TemporaryFolder folder;
  const fs::path in_base = folder.path() / "base.yaml", in_batch = folder.path() / "batch.yaml";
  const auto write = [](const fs::path& file, const char* bandwidth) {
    std::ofstream(file) << "from: h100-sxm\nmemory_bandwidth: " << bandwidth << "\n";
    // Long ago: of files that were just written nobody can tell.
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(1));
  };
  for (const fs::path& changed : {in_base, in_batch}) {
    write(in_base, "2 TB/s");
    write(in_batch, "2 TB/s");
    auto reader = BatchReader::open(
        "{task: step, model: llama-3.1-8b, device: " + in_base.string() + "}", "base", shipped());
    ASSERT_TRUE(reader) << engine::to_text(reader.mistakes());
    ASSERT_TRUE(reader->read({field("step.batch", {"1"}, {0})}));
    ASSERT_TRUE(reader->read({field("device", {in_batch.string()}, {0})}));
    EXPECT_FALSE(reader->is_outdated());
    write(changed, "4 TB/s");
    EXPECT_TRUE(reader->is_outdated()) << changed;
    fs::remove(changed);
    EXPECT_TRUE(reader->is_outdated()) << changed;
  }
  write(in_base, "2 TB/s");
  fs::last_write_time(in_base, fs::file_time_type::clock::now());
  auto reader = BatchReader::open(
      "{task: step, model: llama-3.1-8b, device: " + in_base.string() + "}", "base", shipped());
  ASSERT_TRUE(reader && reader->read({}));
  EXPECT_TRUE(reader->is_outdated()) << "its next second may look like this one";
}

TEST(BatchReader, ABatchLeavesNothingBehindInTheNext) {
  auto reader = BatchReader::open(kBase, "base", shipped());
  ASSERT_TRUE(reader);
  const std::vector<BatchField> small{field("device", {"l4"}, {0})};
  Point before, after;
  PointBuilder(*reader->read(small)).build(0, before);
  ASSERT_TRUE(
      reader->read({field("device", {"h100-sxm"}, {0, 0}), field("parallel.tp", {"2"}, {0, 0})}));
  ASSERT_FALSE(reader->read({field("device", {"h100"}, {0})}));
  const auto again = reader->read(small);
  ASSERT_TRUE(again) << engine::to_text(again.mistakes());
  EXPECT_EQ(again->size(), 1u);
  PointBuilder(*again).build(0, after);
  EXPECT_EQ(before.key, after.key);
}

TEST(BatchReader, WithoutFieldsThereIsTheBaseAlone) {
  auto reader = BatchReader::open("{device: l4, model: llama-3.1-8b}", "base", shipped());
  ASSERT_TRUE(reader);
  const auto batch = reader->read({});
  ASSERT_TRUE(batch) << engine::to_text(batch.mistakes());
  EXPECT_EQ(batch->size(), 1u);
}

TEST(BatchReader, AMistakeNamesTheScenarioAndIsFoundEveryTime) {
  auto reader = BatchReader::open(kBase, "base", shipped());
  ASSERT_TRUE(reader);
  for (int round = 0; round < 2; ++round) {
    const auto batch = reader->read(
        {field("device", {"l4", "h100-smx"}, {0, 1}), field("step.batch", {"4", "many"}, {0, 1})});
    ASSERT_FALSE(batch);
    const std::string text = engine::to_text(batch.mistakes());
    EXPECT_NE(text.find("scenario 1: error: device: "), std::string::npos) << text;
    EXPECT_NE(text.find("did you mean 'h100-sxm'?"), std::string::npos) << text;
    EXPECT_NE(text.find("scenario 1: error: step.batch: 'many'"), std::string::npos) << text;
  }
}

TEST(BatchReader, ABaseThatIsWrongSaysSoAtOnce) {
  const auto reader = BatchReader::open("{modell: llama-3.1-8b}", "base", shipped());
  ASSERT_FALSE(reader);
  EXPECT_NE(engine::to_text(reader.mistakes()).find("did you mean 'model'?"), std::string::npos);
}

}  // namespace
}  // namespace sweep

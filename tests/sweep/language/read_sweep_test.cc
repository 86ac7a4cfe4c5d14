// Base, library, includes: what a sweep starts from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "sweep/language/write_yaml.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"
#include "tests/sweep/sweep_fixture.h"

namespace sweep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Base, NamesAFileOfTheLibrary) {
  const engine::Scenario base = toy_sweep("base: {device: toy, model: small}").space.base();
  EXPECT_EQ(base.device.name, "toy");
  EXPECT_EQ(base.device.memory_capacity.value, 100e9);
  EXPECT_EQ(base.device.scale_up.bandwidth.value, 400e9);
  EXPECT_EQ(base.device.rent.value, 2.5 / 3600);
  EXPECT_EQ(base.model.layers, 8);
  EXPECT_EQ(base.model.hidden, 1024);  // from tiny
}

TEST(Base, OverridesAtAnyDepth) {
  const engine::Scenario base =
      toy_sweep(
          "base:\n"
          "  device: {from: toy, peak: {fp8: 4 PFLOP/s}, scale_up: {bandwidth: 1 TB/s}}\n"
          "  model: tiny\n"
          "  model.layers: 6\n"
          "  step: {phase: prefill, batch: 3}\n")
          .space.base();
  EXPECT_EQ(base.device.peak.fp8.value, 4e15);
  EXPECT_EQ(base.device.peak.bf16.value, 1000e12);
  EXPECT_EQ(base.device.scale_up.bandwidth.value, 1e12);
  EXPECT_EQ(base.device.scale_up.latency.value, 1e-6);
  EXPECT_EQ(base.model.layers, 6);
  EXPECT_EQ(base.step.phase, engine::StepPhase::prefill);
}

// A spec's peaks are for its own clock: raising the clock later must raise the peaks.
TEST(Base, TheRatedClockIsThatOfTheFile) {
  const engine::Scenario base =
      toy_sweep("base: {device: {from: toy, clock: 2 GHz}, model: tiny}").space.base();
  EXPECT_EQ(base.device.rated_clock.value, 1e9);
  EXPECT_EQ(base.device.clock.value, 2e9);
  EXPECT_EQ(matrix_peak(base.device, engine::Dtype::bf16).value, 2000e12);
  const engine::Scenario inlined =
      toy_sweep(
          "base: {device: {clock: 2 GHz, memory_capacity: 1 GB, memory_bandwidth: 1 TB/s}, "
          "model: tiny}")
          .space.base();
  EXPECT_EQ(inlined.device.rated_clock.value, 2e9);
}

TEST(Base, ALinkOfTheLibraryByNameAnywhere) {
  const engine::Scenario base =
      toy_sweep("base: {device: toy, model: tiny, cluster: {nodes: 2, scale_out: toylink}}")
          .space.base();
  EXPECT_EQ(base.cluster.nodes, 2);
  EXPECT_EQ(base.cluster.scale_out.bandwidth.value, 400e9);
}

TEST(Base, AFileByPathAndAHuggingFaceConfig) {
  const std::string where = (fixtures() / "sweep.yaml").string();
  const auto spec = read_sweep_text(
      "base:\n  device: specs/devices/toy-wide.yaml\n"
      "  model: {hf_config: hf/llama-3.1-8b/config.json, layers: 16}\n",
      where, Library());
  // toy-wide is made from toy, which is found in the folder `specs` beside the sweep.
  ASSERT_TRUE(spec.ok()) << engine::to_text(spec.mistakes());
  EXPECT_EQ(spec->space.base().device.memory_bandwidth.value, 4e12);
  EXPECT_EQ(spec->space.base().model.hidden, 4096);
  EXPECT_EQ(spec->space.base().model.layers, 16);
  EXPECT_EQ(spec->space.base().model.name, "llama-3.1-8b");
}

TEST(Base, NothingButABaseIsOnePoint) {
  const SweepSpec spec = toy_sweep(kToyBase + "name: single\ndescription: just one\nlimit: 5\n");
  EXPECT_EQ(spec.space.size(), 1U);
  EXPECT_EQ(admitted(spec).size(), 1U);
  EXPECT_EQ(spec.name, "single");
  EXPECT_EQ(spec.description, "just one");
  EXPECT_EQ(spec.limit, 5U);
  EXPECT_EQ(toy_sweep(kToyBase).name, "toy");
  EXPECT_EQ(toy_sweep(kToyBase).limit, kDefaultLimit);
}

TEST(Library, TheFirstFolderWins) {
  const tests::TemporaryFolder own;
  const std::filesystem::path& folder = own.path();
  std::filesystem::create_directories(folder / "devices");
  std::ofstream(folder / "devices" / "toy.yaml")
      << "memory_capacity: 1 GB\nmemory_bandwidth: 1 TB/s\n";
  const Library library = toy_library().with(folder);
  EXPECT_EQ(library.names("devices").size(), toy_library().names("devices").size());
  const auto spec = read_named(library, "devices", "toy");
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->scenario.device.memory_capacity.value, 1e9);
}

TEST(Library, ListsAndSummarises) {
  EXPECT_THAT(toy_library().names("models"), ElementsAre("small", "tiny"));
  EXPECT_THAT(toy_library().libraries(), ElementsAre("devices", "links", "models"));
  EXPECT_EQ(summary_of(toy_library(), "devices", "toy"), "100 GB, 2 TB/s, 1 PFLOP/s bf16");
  const auto missing = read_named(toy_library(), "devices", "toy-wid");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.mistakes()[0].hint, "did you mean 'toy-wide'?");
}

TEST(Library, ASweepIsSummarisedByItsOpeningSentence) {
  const tests::TemporaryFolder own;
  const std::filesystem::path& folder = own.path();
  std::filesystem::create_directories(folder / "sweeps");
  std::ofstream(folder / "sweeps" / "question.yaml")
      << "# Does 3.35 TB/s, over two\n# lines, suffice? Not always.\nbase: {task: step}\n# "
         "Later.\n";
  std::ofstream(folder / "sweeps" / "silent.yaml") << "base: {task: step}\n";
  const Library library({folder});
  EXPECT_THAT(library.libraries_and_sweeps(), ElementsAre("sweeps"));
  EXPECT_EQ(summary_of(library, "sweeps", "question"), "Does 3.35 TB/s, over two lines, suffice?");
  EXPECT_EQ(summary_of(library, "sweeps", "silent"), "");
}

TEST(Library, ASpecReadsBackFromItsOwnYaml) {
  const auto device = read_named(toy_library(), "devices", "toy-wide");
  ASSERT_TRUE(device.ok());
  const engine::LeafTable& table = engine::leaf_table();
  const engine::Section& section = table.sections[std::size_t(table.find_section("device"))];
  const std::string yaml = fields_yaml(device->scenario, &section, LeavesToWrite::all);
  EXPECT_THAT(yaml, HasSubstr("memory_bandwidth: 4 TB/s\n"));
  EXPECT_THAT(yaml, HasSubstr("peak:\n  fp32: 0 FLOP/s\n  tf32: 0 FLOP/s\n  bf16: 1 PFLOP/s\n"));
  const tests::TemporaryFolder own;
  const std::filesystem::path& folder = own.path();
  std::filesystem::create_directories(folder / "devices");
  std::ofstream(folder / "devices" / "again.yaml") << yaml;
  const auto again = read_named(Library({folder}), "devices", "again");
  ASSERT_TRUE(again.ok()) << engine::to_text(again.mistakes());
  EXPECT_EQ(engine::key_of(again->scenario), engine::key_of(device->scenario));
}

// Every file of the real library must read; each mistake would stop some sweep.
TEST(Library, EveryShippedSpecReads) {
  const Library library({paths::specs()});
  int count = 0;
  for (const std::string& name : library.libraries()) {
    for (const std::string& spec : library.names(name)) {
      const auto read = read_named(library, name, spec);
      EXPECT_TRUE(read.ok()) << engine::to_text(read.mistakes());
      ++count;
    }
  }
  EXPECT_GT(count, 100);
}

TEST(Library, EveryShippedSweepReads) {
  const Library library({paths::specs()});
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(paths::specs()) / "sweeps")) {
    if (entry.path().extension() != ".yaml") continue;
    const auto spec = read_sweep(entry.path(), library);
    EXPECT_TRUE(spec.ok()) << engine::to_text(spec.mistakes());
  }
}

class Include : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_ / "parts"); }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }
  engine::Result<SweepSpec> read(const std::string& name) {
    return read_sweep(folder_ / name, toy_library());
  }
  const tests::TemporaryFolder own_;
  const std::filesystem::path& folder_ = own_.path();
};

TEST_F(Include, ComesFirstAndIsOverridden) {
  write("parts/common.yaml",
        "base: {device: toy, model: tiny, step: {batch: 3, context: 512}}\n"
        "axes:\n  - quant.kv: [bf16, fp8]\nrequire: [\"step.batch < 100\"]\nseed: 1\nlimit: 7\n");
  write("sweep.yaml",
        "include: [parts/common.yaml]\nbase: {step.batch: 5}\naxes:\n  - parallel.tp: [1, "
        "2]\nseed: 2\n");
  const auto spec = read("sweep.yaml");
  ASSERT_TRUE(spec.ok()) << engine::to_text(spec.mistakes());
  EXPECT_EQ(spec->space.base().step.batch, 5);
  EXPECT_EQ(spec->space.base().step.context, 512);
  EXPECT_EQ(spec->space.base().seed, 2);
  EXPECT_EQ(spec->limit, 7U);
  // The included axis is the outer one.
  EXPECT_THAT(leaf_over(*spec, "quant.kv"), ElementsAre(2, 2, 4, 4));
  EXPECT_THAT(spec->space.requirements(), ElementsAre("step.batch < 100"));
  EXPECT_GE(spec->files.size(), 2U);
}

TEST_F(Include, PathsAreThoseOfTheFileThatSaysThem) {
  write("parts/a.yaml", "include: b.yaml\n");
  write("parts/b.yaml", kToyBase);
  write("sweep.yaml", "include: parts/a.yaml\n");
  EXPECT_TRUE(read("sweep.yaml").ok());
}

TEST_F(Include, CirclesAndMissingFilesAreMistakes) {
  write("a.yaml", kToyBase + "include: [b.yaml, c.yml]\n");
  write("b.yaml", "include: a.yaml\n");
  const auto spec = read("a.yaml");
  ASSERT_FALSE(spec.ok());
  const std::string folder = folder_.string();
  EXPECT_EQ(engine::to_text(spec.mistakes()),
            folder +
                "/b.yaml:1:10: error: 'a.yaml' includes itself\n"
                "  hint: break the circle of includes\n" +
                folder +
                "/a.yaml:2:19: error: include: there is no file 'c.yml'\n"
                "  hint: check the path\n");
}

}  // namespace
}  // namespace sweep

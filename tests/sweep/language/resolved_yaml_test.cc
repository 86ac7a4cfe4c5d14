// run.yaml: a sweep that needs no library must give the same points at the same indices.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/paths.h"
#include "tests/sweep/sweep_fixture.h"

namespace sweep {
namespace {

void expect_same(const SweepSpec& spec, std::uint64_t most, const Library& library = {}) {
  const auto again = read_sweep_text(resolved_yaml(spec), "run.yaml", library, InertAxes::allowed);
  ASSERT_TRUE(again.ok()) << engine::to_text(again.mistakes()) << resolved_yaml(spec);
  ASSERT_EQ(again->space.size(), spec.space.size());
  EXPECT_EQ(again->digest, spec.digest);
  EXPECT_EQ(again->resolved, spec.resolved);
  EXPECT_EQ(again->name, spec.name);
  EXPECT_EQ(again->limit, spec.limit);
  EXPECT_EQ(again->space.requirements(), spec.space.requirements());
  EXPECT_EQ(again->space.varied_leaves(), spec.space.varied_leaves());
  PointBuilder builder(spec.space);
  PointBuilder other(again->space);
  Point point;
  Point copy;
  const std::uint64_t step = spec.space.size() / most + 1;
  for (std::uint64_t i = 0; i < spec.space.size(); i += step) {
    const Admission admission = builder.build(i, point);
    ASSERT_EQ(other.build(i, copy), admission) << i;
    EXPECT_EQ(other.rejected_by(), builder.rejected_by());
    if (admission != Admission::admitted) continue;
    ASSERT_EQ(copy.key, point.key) << i;
    ASSERT_EQ(copy.labels, point.labels) << i;
  }
  for (std::size_t i = 0; i < spec.space.label_columns().size(); ++i) {
    EXPECT_EQ(again->space.label_columns()[i].name, spec.space.label_columns()[i].name);
    EXPECT_EQ(again->space.label_columns()[i].values, spec.space.label_columns()[i].values);
  }
}

TEST(ResolvedYaml, EveryFormOfTheLanguageReadsBack) {
  expect_same(
      toy_sweep(
          "name: 'everything: at once'\n"
          "description: \"two\\nlines\"\n"
          "base:\n"
          "  device: {from: toy, l2_capacity: 33333333 B, rent: 1.7 USD/h}\n"
          "  model: tiny\n"
          "  host.name: 'odd, {name}'\n"
          "axes:\n"
          "  - device: [toy, {value: {from: toy-wide, clock: 1.1 GHz}, label: fast}, "
          "{scale_up: {bandwidth: 1 GB/s}}]\n"
          "  - device.memory_bandwidth: {geometric: [2 TB/s, 16 TB/s], count: 4}\n"
          "  - zip: {parallel.tp: [1, 2], step.context: [1024, 2048], when: \"step.batch < 3\"}\n"
          "  - device.scale_up: {values: [toylink], when: \"parallel.tp > 1\"}\n"
          "  - concat:\n"
          "      - {name: one, base: {model: small, step.phase: prefill}, axes: [{step.prompt: [1, "
          "2]}], "
          "require: [\"step.prompt < 2\"]}\n"
          "      - [{step.cached: [3, {value: 4, when: \"device == 'toy'\"}]}, "
          "{product: [{quant.kv: [fp8]}]}]\n"
          "      - {base: {parallel: {pp: 2}}}\n"
          "  - sample: {latin_hypercube: 3, of: {device.clock: [1 GHz, 2 GHz], request.batch: [1, "
          "9], "
          "quant.weights: [bf16, fp8]}}\n"
          "  - sample: {sobol: 2, seed: 3, of: {host.launch_cost: {geometric: [1 us, 9 us]}, "
          "cluster: "
          "[{nodes: 1}, {nodes: 2}]}, when: \"parallel.tp == 2\"}\n"
          "  - step.batch: [1, 2]\n"
          "require: [{expr: \"parallel.tp * 2 < 5\", reason: \"so: there\"}, \"step.batch > 0\"]\n"
          "derive: {host.mode: \"step.batch > 1 ? 'graph' : 'eager'\", request.cached: "
          "\"step.batch\"}\n"
          "seed: 42\nreplicates: 2\nlimit: 123\n"),
      20000);
}

TEST(ResolvedYaml, RolesReadBack) {
  const std::string base = "base: {task: request, device: toy, model: tiny";
  const std::string axes =
      "axes:\n"
      "  - device: [toy, toy-wide]\n"
      "  - prefill: [none, {}, {device: {from: toy-wide, clock: 3 GHz}, parallel: {tp: 8}}]\n"
      "  - concat:\n"
      "      - {base: {prefill: {quant: {weights: fp8}}}}\n"
      "      - [{prefill.device.scale_up: [toylink]}]\n"
      "      - {base: {prefill: none}}\n"
      "  - prefill.parallel.pp: {values: [1, 2], when: prefill.present}\n"
      "derive: {prefill.serving.replicas: request.batch}\n";
  for (const char* prefill :
       {"", ", prefill: {}", ", prefill: none",
        ", prefill.present: false, prefill.device: toy-wide",
        ", prefill: {device: toy-wide, parallel: {tp: 4}, model: {from: small}}"}) {
    expect_same(toy_sweep(base + prefill + "}\n"), 100);
    expect_same(toy_sweep(base + prefill + "}\n" + axes), 100);
  }
}

TEST(ResolvedYaml, ShippedSweepsReadBack) {
  namespace fs = std::filesystem;
  const Library library({paths::specs()});
  // Names are resolved; calibrations are data and must still be there.
  const fs::path only_calibrations =
      fs::temp_directory_path() / ("llmsweep-calibrations-" + std::to_string(getpid()));
  fs::create_directories(only_calibrations);
  fs::create_directory_symlink(fs::path(paths::specs()) / "calibration",
                               only_calibrations / "calibration");
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(paths::specs()) / "sweeps")) {
    if (entry.path().extension() != ".yaml") continue;
    const auto spec = read_sweep(entry.path(), library);
    ASSERT_TRUE(spec.ok()) << engine::to_text(spec.mistakes());
    expect_same(*spec, 2000, Library({only_calibrations}));
    // Nor do the names that it carries as labels stand in its way where the library is there, too.
    const auto beside = read_sweep_text(resolved_yaml(*spec), "run.yaml", library);
    ASSERT_TRUE(beside.ok()) << entry.path() << engine::to_text(beside.mistakes());
    EXPECT_EQ(beside->digest, spec->digest);
    EXPECT_EQ(beside->notes, std::vector<std::string>()) << entry.path();
  }
  fs::remove_all(only_calibrations);
}

// With an axis over devices, no name of a device stands under the base.
TEST(ResolvedYaml, LabelsOfASweepThatWasWrittenOutAreNoMistakes) {
  const SweepSpec spec =
      toy_sweep("base: {model: tiny}\naxes: [device: [toy, toy-wide], {step.batch: [1, 2]}]\n");
  const auto again =
      read_sweep_text(resolved_yaml(spec), "run.yaml", toy_library(), InertAxes::refused);
  ASSERT_TRUE(again.ok()) << engine::to_text(again.mistakes());
  EXPECT_EQ(again->digest, spec.digest);
}

TEST(ResolvedYaml, OtherCalibrationsAreRefused) {
  const auto spec = read_sweep(paths::specs("sweeps/memory_wall.yaml"), Library({paths::specs()}));
  ASSERT_TRUE(spec.ok()) << engine::to_text(spec.mistakes());
  const Library none({paths::specs("sweeps")});  // a folder without calibrations
  // Beside it are no specs, wherever the test is started.
  const std::string elsewhere = paths::specs("sweeps/run.yaml");
  const auto again = read_sweep_text(resolved_yaml(*spec), elsewhere, none);
  ASSERT_EQ(again.mistakes().size(), 1u);
  const std::string checksum = spec->space.base().calibration.checksum;
  EXPECT_EQ(again.mistakes()[0].what,
            "this sweep was resolved with other calibrations (" + checksum + ")");
  EXPECT_EQ(again.mistakes()[0].hint,
            "the library now has none; remove 'calibration.checksum' to go on with these");
}

TEST(ResolvedYaml, TheDigestIsOfThePointsNotOfTheWords) {
  const SweepSpec a = toy_sweep(kToyBase + "axes: [{step.batch: [1, 2]}]\nname: a\n");
  const SweepSpec b = toy_sweep(
      "# other words\nname: b\nlimit: 3\naxes:\n  - step.batch: {powers_of_two: [1, 2]}\n" +
      kToyBase);
  const SweepSpec c = toy_sweep(kToyBase + "axes: [{step.batch: [1, 3]}]\nname: a\n");
  EXPECT_EQ(a.digest, b.digest);
  EXPECT_NE(a.digest, c.digest);
}

}  // namespace
}  // namespace sweep

// Files that ask too much of their reader end in a message that says which limit they pass.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "sweep/language/yaml_file.h"
#include "tests/support/environment.h"
#include "tests/support/toy_rows.h"
#include "tests/sweep/sweep_fixture.h"

namespace sweep {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

std::string raise(const std::string& limit) {
  return "\n  hint: if that is meant, raise the limit: LLMSWEEP_LIMITS=" + limit + "=...\n";
}

class HostileFiles : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path() / name, std::ios::binary) << text;
    return folder_.path() / name;
  }
  std::string mistakes_in(const std::string& name) const {
    const auto spec = read_sweep(folder_.path() / name, toy_library());
    return spec ? "" : engine::to_text(spec.mistakes());
  }
  tests::TemporaryFolder folder_;
};

// Ten levels of ten aliases each: ten billion values in half a kilobyte.
TEST(HostileSpecs, AliasesCannotMultiplyWithoutEnd) {
  std::string text = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i <= 10; ++i) {
    const std::string one = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + one +
            repeated(", " + one, 9) + "]\n";
  }
  EXPECT_THAT(mistakes_of(text),
              HasSubstr("error: the document is too large once its aliases are put in place" +
                        raise("nodes")));
}

TEST(HostileSpecs, AliasesOfALongTextCountItsLetters) {
  const std::string text =
      "a: &a " + std::string(1 << 20, 'x') + "\nb: [*a" + repeated(", *a", 70) + "]\n";
  EXPECT_THAT(mistakes_of(text),
              HasSubstr("too large once its aliases are put in place" + raise("spec_bytes")));
}

TEST(HostileSpecs, NestingHasAnEndAlsoThroughAliases) {
  const std::string deep = repeated("[", 99) + "1" + repeated("]", 99);
  EXPECT_EQ(
      mistakes_of("base: " + repeated("[", 100) + repeated("]", 100)),
      "toy.yaml:1:106: error: more than 100 lists and maps inside one another" + raise("depth"));
  EXPECT_EQ(
      mistakes_of("name: &a " + deep + "\nbase: [[*a]]\n"),
      "toy.yaml:2:9: error: more than 100 lists and maps inside one another" + raise("depth"));
  EXPECT_THAT(mistakes_of("base: " + repeated("[", 100'000)), HasSubstr("more than 100 lists"));
  EXPECT_THAT(mistakes_of("base:\n" + repeated("- ", 100'000) + "1"),
              HasSubstr("more than 100 lists"));
}

TEST(HostileSpecs, FiftyMistakesAreToldAndTheRestCounted) {
  std::string text = "base:\n";
  for (int i = 0; i < 50'000; ++i) text += "  no_such_key_" + std::to_string(i) + ": 1\n";
  const auto spec = read_toy(text);
  ASSERT_FALSE(spec.ok());
  ASSERT_EQ(spec.mistakes().size(), 51u);
  EXPECT_EQ(spec.mistakes().front().where.line, 2);
  EXPECT_THAT(engine::to_text(spec.mistakes()),
              EndsWith("toy.yaml: error: and 49950 more mistakes\n  hint: correct these first\n"));
}

TEST(HostileSpecs, EveryKindOfManyMistakesIsCounted) {
  std::string axes, requirements, duplicates, values;
  for (int i = 0; i < 3000; ++i) {
    const std::string number = std::to_string(i);
    axes += "  - nothing.like.this" + number + ": [1, 2]\n";
    requirements += "  - no.such.name" + number + " < 3\n";
    duplicates += "name: x\n";
    values += "no-such-device" + number + ", ";
  }
  for (const std::string& text :
       {kToyBase + "axes:\n" + axes, kToyBase + "require:\n" + requirements, kToyBase + duplicates,
        kToyBase + "axes: [{device: [" + values + "toy]}]"}) {
    const auto spec = read_toy(text);
    ASSERT_FALSE(spec.ok());
    EXPECT_EQ(spec.mistakes().size(), 51u);
    EXPECT_THAT(spec.mistakes().back().what, HasSubstr("more mistakes")) << text.substr(0, 100);
  }
}

TEST(HostileSpecs, LongKeysValuesNamesAndExpressionsAreRefused) {
  EXPECT_EQ(mistakes_of("? " + std::string(2000, 'k') + "\n: 1\n"),
            "toy.yaml:1:3: error: a key of more than 1 KiB" + raise("key_bytes"));
  EXPECT_EQ(mistakes_of("name: " + std::string((1 << 20) + 1, 'x')),
            "toy.yaml:1:7: error: a value of more than 1 MiB" + raise("scalar_bytes"));
  EXPECT_EQ(mistakes_of(
                "base: {device: toy, model: {from: tiny, name: " + std::string(70'000, 'x') + "}}"),
            "toy.yaml:1:47: error: model.name: more than 64 KiB" + raise("text_bytes"));
  EXPECT_EQ(mistakes_of(kToyBase + "require: [\"1" + repeated(" + 1", 5000) + "\"]"),
            "toy.yaml:2:11: error: require: more than 16 KiB" + raise("expression_bytes"));
}

TEST(HostileSpecs, AMapHasAtMostSoManyKeys) {
  InputLimits limits;
  limits.keys = 3;
  EXPECT_TRUE(read_yaml("{a: 1, b: 2, c: 3}", "f", limits).ok());
  EXPECT_EQ(engine::to_text(read_yaml("{a: 1, b: 2, c: 3, d: 4}", "f", limits).mistakes()),
            "f:1:20: error: a map of more than 3 keys" + raise("keys"));
}

TEST(HostileSpecs, NumbersBeyondADoubleAreRefused) {
  const auto capacity = [](const std::string& value) {
    return mistakes_of("base: {device: {from: toy, memory_capacity: " + value + "}, model: tiny}");
  };
  EXPECT_EQ(capacity("1e308 TiB"),
            "toy.yaml:1:45: error: device.memory_capacity: '1e308 TiB' is not a quantity in B\n"
            "  hint: it is too large, or too near to zero, for a number here\n");
  for (const char* value :
       {"1e309 B", "1e2147483647 TB", "1e-2147483648 B", "1e99999999999 GB", "1e-400 B"}) {
    EXPECT_THAT(capacity(value), HasSubstr("is not a quantity in B")) << value;
  }
  EXPECT_EQ(mistakes_of("base: {device: toy, model: tiny, step: {batch: 99999999999999999999}}"),
            "toy.yaml:1:48: error: step.batch: '99999999999999999999' is not a whole number\n"
            "  hint: it is too large for one\n");
}

TEST(HostileSpecs, RangesStayWhereNumbersAreExact) {
  EXPECT_EQ(mistakes_of(kToyBase + "axes: [{seed: {linear: [1, 9223372036854775807], count: 3}}]"),
            "toy.yaml:2:24: error: seed: a range of whole numbers cannot go beyond 2^53\n"
            "  hint: write a list of values\n");
}

TEST_F(HostileFiles, IncludesCannotMultiplyWithoutEnd) {
  const auto including = [](const std::string& name) {
    return "include: [" + name + repeated(", " + name, 39) + "]\n";
  };
  write("a.yaml", including("b.yaml"));
  write("b.yaml", including("c.yaml"));
  write("c.yaml", including("d.yaml"));
  write("d.yaml", "base: {device: toy}\n");
  EXPECT_THAT(mistakes_in("a.yaml"),
              HasSubstr("error: the sweep takes more than 1000 files" + raise("files")));
}

TEST_F(HostileFiles, ChainsOfFilesHaveAnEnd) {
  for (int i = 0; i < 40; ++i) {
    const std::string next = std::to_string(i + 1) + ".yaml";
    write("include" + std::to_string(i) + ".yaml", "include: include" + next + "\n");
    write("device" + std::to_string(i) + ".yaml", "from: device" + next + "\n");
  }
  write("sweep.yaml", "base: {device: device0.yaml, model: tiny}\n");
  const std::string what = "error: more than 32 files that include, or are made from, one another";
  EXPECT_THAT(mistakes_in("include0.yaml"), HasSubstr(what + raise("file_depth")));
  EXPECT_THAT(mistakes_in("sweep.yaml"), HasSubstr(what + raise("file_depth")));
}

// The values of all files together have the limit of one.
TEST_F(HostileFiles, ManyLargeFilesCountTogether) {
  write("big.yaml", "name: [" + repeated("1,", 300) + "1]\n");
  write("sweep.yaml", "include: [big.yaml" + repeated(", big.yaml", 39) + "]\n" + kToyBase);
  const tests::WithEnvironment limits(kLimitsVariable, "nodes=1000");
  EXPECT_THAT(mistakes_in("sweep.yaml"),
              HasSubstr("too large once its aliases are put in place" + raise("nodes")));
}

TEST_F(HostileFiles, TextThatIsNotUtf8IsRefusedWithItsPlace) {
  const std::string file = write("sweep.yaml", kToyBase + "name: caf\xe9\n").string();
  EXPECT_EQ(mistakes_in("sweep.yaml"),
            file + ":2:10: error: byte 0xe9 is not UTF-8 text\n  hint: save the file as UTF-8\n");
  write("device.yaml", "name: \xff\n");
  write("names.yaml", "base: {device: device.yaml, model: tiny}\n");
  EXPECT_THAT(mistakes_in("names.yaml"),
              HasSubstr("device.yaml:1:7: error: byte 0xff is not UTF-8 text"));
  write("utf16.yaml", std::string("b\0a\0s\0e\0:\0", 10));
  EXPECT_THAT(mistakes_in("utf16.yaml"),
              HasSubstr("utf16.yaml:1:2: error: byte 0x00 is not UTF-8 text"));
}

// A spec is named after its file unless it says otherwise, and rows carry the name.
TEST_F(HostileFiles, NamesOfFilesThatBecomeNamesAreUtf8) {
  write("caf\xe9.yaml", kToyBase);
  EXPECT_THAT(mistakes_in("caf\xe9.yaml"), HasSubstr("is not UTF-8 text\n  hint: rename the file"));
  write("caf\xe9.yaml", kToyBase + "name: cafe\n");
  EXPECT_EQ(mistakes_in("caf\xe9.yaml"), "");
}

}  // namespace
}  // namespace sweep

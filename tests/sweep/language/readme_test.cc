// The examples of the READMEs are read as a user would read them.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/support/paths.h"
#include "tests/sweep/sweep_fixture.h"

namespace sweep {
namespace {

struct Block {
  std::string kind;  // what follows the three ticks
  std::string text;
};

std::vector<Block> blocks_of(const std::filesystem::path& file) {
  std::vector<Block> blocks;
  std::ifstream stream(file);
  bool inside = false;
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("```")) {
      inside = !inside;
      if (inside) blocks.push_back({line.substr(3), ""});
    } else if (inside) {
      blocks.back().text += line + "\n";
    }
  }
  return blocks;
}

bool admits_any(const SweepSpec& spec) {
  PointBuilder builder(spec.space);
  Point point;
  for (std::uint64_t i = 0; i < spec.space.size(); ++i) {
    if (builder.build(i, point) == Admission::admitted) return true;
  }
  return false;
}

void examples_of(const std::string& file, int at_least) {
  SCOPED_TRACE(file);
  const Library library({paths::specs()});
  const std::vector<Block> blocks = blocks_of(paths::source(file));
  int read = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    SCOPED_TRACE(blocks[i].text);
    if (blocks[i].kind == "yaml") {
      const bool whole = blocks[i].text.find("base:") == 0;
      const std::string base = whole ? "" : "base: {device: h100-sxm, model: llama-3.1-8b}\n";
      const auto spec = read_sweep_text(base + blocks[i].text, "README.yaml", library);
      ASSERT_TRUE(spec.ok()) << engine::to_text(spec.mistakes());
      EXPECT_TRUE(admits_any(*spec));
      ++read;
    } else if (blocks[i].kind == "yaml wrong") {
      const auto spec = read_sweep_text(blocks[i].text, "README.yaml", library);
      ASSERT_FALSE(spec.ok());
      EXPECT_EQ(engine::to_text(spec.mistakes()), blocks[i + 1].text);
    }
  }
  EXPECT_GE(read, at_least);
}

TEST(Readme, ExamplesReadAndWrongOnesSayWhatIsPrinted) {
  examples_of("sweep/README.md", 7);
  examples_of("README.md", 2);
}

}  // namespace
}  // namespace sweep

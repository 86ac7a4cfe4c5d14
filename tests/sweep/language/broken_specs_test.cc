// Specs as users get them wrong (tests/sweep/broken/*.yaml), and all that is said about each, in full
// (*.expected beside it).
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "tests/support/paths.h"
#include "tests/sweep/sweep_fixture.h"

namespace sweep {
namespace {

std::filesystem::path broken() {
  return std::filesystem::path(paths::source()) / "tests/sweep/broken";
}

std::vector<std::string> broken_specs() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(broken())) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string content(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// Messages as a user in that folder would see them.
std::string without_folder(std::string text, const std::string& folder,
                           const std::string& instead) {
  for (std::size_t at = 0; (at = text.find(folder, at)) != std::string::npos;) {
    text.replace(at, folder.size(), instead);
  }
  return text;
}

class BrokenSpec : public testing::TestWithParam<std::string> {};

TEST_P(BrokenSpec, SaysExactlyThis) {
  const auto spec = read_sweep(broken() / (GetParam() + ".yaml"), toy_library());
  ASSERT_FALSE(spec.ok());
  std::string text = engine::to_text(spec.mistakes());
  text = without_folder(text, broken().string() + "/", "");
  text = without_folder(text, (fixtures() / "specs").string(), "specs");
  EXPECT_EQ(text, content(broken() / (GetParam() + ".expected")));
}

INSTANTIATE_TEST_SUITE_P(Specs, BrokenSpec, testing::ValuesIn(broken_specs()),
                         [](const testing::TestParamInfo<std::string>& tested) {
                           return tested.param;
                         });

TEST(BrokenSpecs, ThereAreEnoughOfThem) { EXPECT_GE(broken_specs().size(), 90U); }

}  // namespace
}  // namespace sweep

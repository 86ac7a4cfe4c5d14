#include "sweep/language/yaml_file.h"

#include <gtest/gtest.h>

namespace sweep {
namespace {

std::string mistakes(const char* text) {
  const auto node = read_yaml(text, "a.yaml");
  return node ? "" : engine::to_text(node.mistakes());
}

TEST(YamlFile, NodesKnowTheirPlace) {
  const auto root = read_yaml("base:\n  step: {batch: 64}\naxes:\n  - a: [1, 'two']\n", "a.yaml");
  ASSERT_TRUE(root.ok());
  const Node& batch = *root->find("base")->find("step")->find("batch");
  EXPECT_EQ(batch.text, "64");
  EXPECT_EQ(batch.where, (engine::Location{"a.yaml", 2, 17}));
  const Node& two = root->find("axes")->items[0].find("a")->items[1];
  EXPECT_TRUE(two.quoted);
  EXPECT_EQ(two.where, (engine::Location{"a.yaml", 4, 12}));
  EXPECT_EQ(flow_text(*root->find("axes")), "[{a: [1, two]}]");
}

TEST(YamlFile, DuplicateKeysAreMistakes) {
  EXPECT_EQ(mistakes("a: 1\nb: 2\na: 3\n"),
            "a.yaml:3:1: error: duplicate key 'a'\n  hint: it is already set on line 1\n");
}

TEST(YamlFile, MergeKeysFillInWhatIsNotWritten) {
  const auto root = read_yaml("d: &d {x: 1, y: 2}\ne:\n  <<: *d\n  y: 3\n", "a.yaml");
  ASSERT_TRUE(root.ok());
  EXPECT_EQ(root->find("e")->find("x")->text, "1");
  EXPECT_EQ(root->find("e")->find("y")->text, "3");
}

TEST(YamlFile, AliasesCannotGrowWithoutBound) {
  std::string text = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c <= 'z'; ++c) {
    const std::string before(1, char(c - 1));
    text += std::string(1, c) + ": &" + c + " [";
    for (int i = 0; i < 10; ++i) text += (i ? ", *" : "*") + before;
    text += "]\n";
  }
  EXPECT_NE(mistakes(text.c_str()).find("too large"), std::string::npos);
}

TEST(YamlFile, SyntaxErrorsHaveAPlace) {
  EXPECT_EQ(mistakes("a: [1, 2\nb: 3\n").rfind("a.yaml:2:", 0), 0U) << mistakes("a: [1, 2\nb: 3\n");
}

TEST(YamlFile, AnEmptyFileIsNothing) {
  const auto root = read_yaml("# only a comment\n", "a.yaml");
  ASSERT_TRUE(root.ok());
  EXPECT_TRUE(root->is_null());
}

}  // namespace
}  // namespace sweep

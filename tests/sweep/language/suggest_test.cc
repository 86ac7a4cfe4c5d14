#include "sweep/language/suggest.h"

#include <gtest/gtest.h>

namespace sweep {
namespace {

TEST(Suggest, CountsEdits) {
  EXPECT_EQ(edit_distance("bandwith", "bandwidth"), 1);
  EXPECT_EQ(edit_distance("h100-smx", "h100-sxm"), 1);  // a swap is one slip
  EXPECT_EQ(edit_distance("Memory-Bandwidth", "memory_bandwidth"), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
}

TEST(Suggest, NamesTheNearestAndOnlyIfItIsNear) {
  const std::vector<std::string> names{"h100-sxm", "h100-pcie", "b200-sxm", "l4"};
  EXPECT_EQ(nearest("h100-smx", names), "h100-sxm");
  EXPECT_EQ(nearest("h100", names), "h100-sxm");  // the start of a name
  EXPECT_EQ(nearest("zebra", names), "");
  // The same parts in another order are nearer than any slip.
  EXPECT_EQ(nearest("a100-sxm-80gb", {"v100-sxm-32gb", "a100-80gb-sxm"}), "a100-80gb-sxm");
  EXPECT_EQ(suggestion("zebra", names, "known devices"),
            "known devices: h100-sxm, h100-pcie, b200-sxm, l4");
  // Names that begin alike come first.
  EXPECT_EQ(suggestion("qwen3-nxt-80b", {"bamba-9b", "llama-7b", "qwen3-next-80b-a3b"}, "known"),
            "known: qwen3-next-80b-a3b, bamba-9b, llama-7b");
}

TEST(Suggest, NamesEveryOneThatGoesOnWhereTheWrittenOneEnds) {
  const std::vector<std::string> names{"a10", "a100-40gb", "a100-80gb", "h100-nvl", "h100-sxm"};
  EXPECT_EQ(suggestion("H100", names, ""), "did you mean 'h100-nvl' or 'h100-sxm'?");
  EXPECT_EQ(suggestion("a100", names, ""), "did you mean 'a100-40gb' or 'a100-80gb'?");
  EXPECT_EQ(suggestion("h100 sxm", names, ""), "did you mean 'h100-sxm'?");
  EXPECT_EQ(suggestion("nvl", names, ""), "did you mean 'h100-nvl'?");
}

TEST(Suggest, FindsTheNameInsideALongerOne) {
  const std::vector<std::string> names{"llama-3.1-8b", "llama-3.1-70b", "qwen2.5-7b"};
  EXPECT_EQ(likely("Meta-Llama-3.1-70B-Instruct", names),
            std::vector<std::string>{"llama-3.1-70b"});
}

// A maker's name before it tells less than the number of the part.
TEST(Suggest, FindsTheNumberOfAPart) {
  const std::vector<std::string> names{"a100-80gb-sxm", "h100-pcie", "h100-sxm", "h1000"};
  EXPECT_EQ(likely("nvidia-h100", names), (std::vector<std::string>{"h100-pcie", "h100-sxm"}));
  EXPECT_EQ(likely("NVIDIA A100 40GB", names), (std::vector<std::string>{"a100-80gb-sxm"}));
  EXPECT_TRUE(likely("nvidia-gpu", names).empty());
}

TEST(Suggest, LongQuestionsAreCut) {
  EXPECT_EQ(did_you_mean({"a", "b", "c", "d", "e", "f", "g"}),
            "did you mean 'a', 'b', 'c', 'd', 'e' or one of 2 more?");
}

TEST(Suggest, LongListingsAreCut) {
  EXPECT_EQ(listing({"a", "b", "c", "d"}, 2), "a, b, and 2 more");
}

}  // namespace
}  // namespace sweep

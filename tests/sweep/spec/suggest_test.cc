#include "sweep/spec/suggest.h"

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
  EXPECT_EQ(suggestion("zebra", names, "known devices"),
            "known devices: h100-sxm, h100-pcie, b200-sxm, l4");
}

TEST(Suggest, LongListingsAreCut) {
  EXPECT_EQ(listing({"a", "b", "c", "d"}, 2), "a, b, and 2 more");
}

}  // namespace
}  // namespace sweep

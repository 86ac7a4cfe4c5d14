// A list whose first few stand inside it is a list: whatever is done to it, it holds what a vector would.
#include "engine/base/small_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/base/random.h"

namespace engine {
namespace {

using List = SmallList<std::int64_t, 4>;

bool same(const List& list, const std::vector<std::int64_t>& vector) {
  return list.empty() == vector.empty() && std::ranges::equal(list, vector);
}

TEST(SmallList, HoldsWhatAVectorWould) {
  List list;
  std::vector<std::int64_t> vector;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    // Longer and shorter by turns: it outgrows its room inside, and what it has then stays.
    const double grows = i / 100 % 2 == 0 ? 0.7 : 0.3;
    const auto pick = [&](std::size_t count) {
      return std::ptrdiff_t(double(count) * uniform(2, Stream::arrivals, i));
    };
    if (uniform(1, Stream::arrivals, i) < grows) {
      const std::ptrdiff_t at = pick(vector.size() + 1);
      list.insert(list.begin() + at, std::int64_t(i));
      vector.insert(vector.begin() + at, std::int64_t(i));
      list.push_back(list.front());
      vector.push_back(vector.front());
    } else if (!vector.empty()) {
      const std::ptrdiff_t at = pick(vector.size());
      list.erase(list.begin() + at);
      vector.erase(vector.begin() + at);
      if (!vector.empty()) {
        list.pop_back();
        vector.pop_back();
      }
    }
    ASSERT_TRUE(same(list, vector)) << i;
  }
  list.erase_if([](std::int64_t one) { return one % 2 == 0; });
  std::erase_if(vector, [](std::int64_t one) { return one % 2 == 0; });
  EXPECT_TRUE(same(list, vector));
}

TEST(SmallList, MovedItLeavesAnEmptyListBehind) {
  for (const std::size_t count : {0, 3, 4, 5, 100}) {
    List from;
    from.assign(count, 7);
    List to;
    to.assign(50, 1);
    to = std::move(from);
    EXPECT_TRUE(same(to, std::vector<std::int64_t>(count, 7)));
    from.clear();
    from.push_back(3);
    EXPECT_TRUE(same(from, {3}));
    EXPECT_TRUE(same(to, std::vector<std::int64_t>(count, 7)));
    const List last(std::move(to));
    EXPECT_TRUE(same(last, std::vector<std::int64_t>(count, 7)));
  }
}

TEST(SmallList, ACopyIsAListOfItsOwn) {
  for (const std::size_t count : {0, 3, 4, 5, 100}) {
    List from;
    from.assign(count, 7);
    List copy(from), other;
    other.assign(50, 1);
    other = from;
    from.assign(count, 8);
    EXPECT_TRUE(same(copy, std::vector<std::int64_t>(count, 7)));
    EXPECT_TRUE(same(other, std::vector<std::int64_t>(count, 7)));
    copy.assign(std::vector<std::int64_t>(20, 9));
    EXPECT_TRUE(same(copy, std::vector<std::int64_t>(20, 9)));
  }
}

}  // namespace
}  // namespace engine

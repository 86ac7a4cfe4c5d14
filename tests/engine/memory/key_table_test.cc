#include "engine/memory/key_table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <unordered_map>

#include "engine/base/random.h"

namespace engine {
namespace {

// Keys that begin alike stand in one another's way, and the table grows and shrinks.
TEST(KeyTable, KnowsWhatAMapKnows) {
  KeyTable table;
  table.clear();
  std::unordered_map<std::uint64_t, std::int32_t> map;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const std::uint64_t dice = random_bits(5, Stream::sampling, i);
    const std::uint64_t key = dice % (i < 10'000 ? 3000 : 100);
    const auto known = map.find(key);
    ASSERT_EQ(table.find(key), known == map.end() ? -1 : known->second);
    if (known == map.end()) {
      table.insert(key, std::int32_t(i));
      map[key] = std::int32_t(i);
    } else {
      table.erase(key);
      map.erase(known);
    }
  }
  std::size_t count = 0;
  table.each([&](std::int32_t) { ++count; });
  EXPECT_EQ(count, map.size());
  table.clear();
  for (std::uint64_t key = 0; key < 3000; ++key) EXPECT_EQ(table.find(key), -1);
}

// Whether it stays as large as it was or begins small again, a table that is cleared is an empty one.
TEST(KeyTable, ClearedItIsANewOne) {
  KeyTable table;
  for (const std::uint64_t count : {1000, 3, 40, 2000, 0, 10}) {
    table.clear();
    for (std::uint64_t key = 0; key < 2000; ++key) EXPECT_EQ(table.find(key), -1);
    for (std::uint64_t key = 0; key < count; ++key) table.insert(key, std::int32_t(key));
    for (std::uint64_t key = 0; key < count; ++key) EXPECT_EQ(table.find(key), std::int32_t(key));
  }
}

}  // namespace
}  // namespace engine

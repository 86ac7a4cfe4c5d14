// A row struct with a field list is all that a table needs: its columns, its way into a buffer, and back.
#include "results/detail_rows.h"

#include <gtest/gtest.h>

#include "engine/model/op_names.h"

namespace results {
namespace {

struct Visit {
  engine::Phase phase = engine::Phase::decode;
  double weight = 0;
  bool paid = false;
  engine::Seconds at;
  std::int64_t guests = 0;

  template <class Self, class Each>
  static void fields(Self& self, Each&& visit) {
    visit("phase", self.phase, "when they came");
    visit("weight", self.weight, "how much they count");
    visit("paid", self.paid, "whether they paid");
    visit("at", self.at, "when they left");
    visit("guests", self.guests, "how many they were");
  }
  bool operator==(const Visit&) const = default;
};

Visit visit(std::int64_t number) {
  return {.phase = number % 2 == 0 ? engine::Phase::decode : engine::Phase::prefill,
          .weight = 0.5 * double(number),
          .paid = number % 3 == 0,
          .at = engine::Seconds{double(number)},
          .guests = -number};
}
std::vector<Visit> visits(std::int64_t first, std::int64_t count) {
  std::vector<Visit> rows;
  for (std::int64_t i = 0; i < count; ++i) rows.push_back(visit(first + i));
  return rows;
}

// The row at a place of the buffer: codes are phase and paid, numbers the other three.
Visit row_at(const DetailRows& rows, std::size_t at) {
  const std::uint64_t bits[] = {rows.codes(0)[at], rows.numbers(0)[at], rows.codes(1)[at],
                                rows.numbers(1)[at], rows.numbers(2)[at]};
  return RowFormat<Visit>::row(bits);
}

TEST(RowFormat, ColumnsFollowFromTheFieldList) {
  const std::vector<Column> columns = RowFormat<Visit>::columns();
  ASSERT_EQ(columns.size(), 5U);
  EXPECT_EQ(columns[0].name, "phase");
  EXPECT_EQ(columns[0].type, ColumnType::text);
  EXPECT_EQ(columns[0].names.size(), enum_names(engine::Phase{}).size());
  EXPECT_EQ(columns[1].type, ColumnType::float64);
  EXPECT_EQ(columns[2].type, ColumnType::boolean);
  EXPECT_EQ(columns[3].name, "at_s");
  EXPECT_EQ(columns[3].unit, "s");
  EXPECT_EQ(columns[4].type, ColumnType::int64);
  EXPECT_EQ(columns[4].description, "how many they were");
}

TEST(DetailRows, KeepRowsOfEveryPointInOrder) {
  DetailRows rows(RowFormat<Visit>::columns());
  std::int64_t next = 0;
  // Twice: memory is used again.
  for (int round = 0; round < 2; ++round) {
    rows.clear();
    next = 0;
    for (std::size_t point = 0; point < 100; ++point) {
      const auto count = std::int64_t(point % 4);
      rows.add(point, visits(next, count));
      next += count;
    }
  }
  ASSERT_EQ(rows.rows(), std::size_t(next));
  ASSERT_EQ(rows.counts().size(), 100U);
  for (std::size_t point = 0; point < 100; ++point) EXPECT_EQ(rows.counts()[point], point % 4);
  const std::size_t before = rows.bytes();
  rows.trim();
  EXPECT_LE(rows.bytes(), before);
  for (std::int64_t i = 0; i < next; ++i) EXPECT_EQ(row_at(rows, std::size_t(i)), visit(i));
}

TEST(DetailRows, PointsWithoutRowsCostNothing) {
  DetailRows rows(RowFormat<Visit>::columns());
  for (std::size_t point = 0; point < 1000; ++point) rows.add(point, std::vector<Visit>{});
  EXPECT_EQ(rows.bytes(), 0U);
  rows.add(1000, visits(0, 1));
  EXPECT_EQ(rows.counts().size(), 1001U);
  EXPECT_EQ(rows.counts()[1000], 1U);
}

}  // namespace
}  // namespace results

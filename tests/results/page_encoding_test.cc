// Pages we write, read back by Arrow.
#include "results/page_encoding.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include "engine/base/random.h"
#include "results/parquet_file.h"
#include "results/reader.h"
#include "results/run_length.h"
#include "tests/support/toy_rows.h"

namespace results {
namespace {

// A file of this one column.
class OneColumn {
 public:
  OneColumn(const Column& column, const ColumnPages& pages, std::size_t rows) {
    const FileBytes file = ParquetFormat({column}, {}).write({pages}, rows);
    std::ofstream(path_, std::ios::binary) << file.bytes;
  }
  ParquetReader reader() const { return ParquetReader(path_); }

 private:
  const tests::TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "file.parquet";
};

const Column kInteger{.name = "x", .type = ColumnType::int64};
const Column kNumber{.name = "x", .type = ColumnType::float64};
const Column kNullableNumber{.name = "x", .type = ColumnType::float64, .nullable = true};
const Column kText{.name = "x", .type = ColumnType::text, .has_range = false};
const Column kNullableText{
    .name = "x", .type = ColumnType::text, .nullable = true, .has_range = false};

std::vector<std::uint64_t> bits_of(const std::vector<double>& values) {
  std::vector<std::uint64_t> bits;
  for (const double value : values) bits.push_back(std::bit_cast<std::uint64_t>(value));
  return bits;
}

double number_in(const std::string& bytes) {
  double number = 0;
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

// Runs and single values mixed, of `distinct` values.
std::vector<std::uint64_t> mixed(std::size_t rows, std::uint64_t distinct, std::uint64_t seed) {
  std::vector<std::uint64_t> values;
  for (std::uint64_t i = 0; values.size() < rows; ++i) {
    const std::uint64_t random = engine::random_bits(seed, engine::Stream::sampling, i);
    const std::size_t run = random % 3 == 0 ? 1 + (random >> 8) % 70 : 1;
    values.insert(values.end(), std::min(run, rows - values.size()), (random >> 32) % distinct);
  }
  return values;
}

TEST(PageEncoding, IntegersOfEveryCardinality) {
  for (const std::size_t rows : {1, 7, 8, 9, 100, 5000}) {
    for (const std::uint64_t distinct : {1, 2, 3, 4, 5, 255, 256, 257, 4096, 1'000'000'000}) {
      const auto values = mixed(rows, distinct, rows + distinct);
      const OneColumn file(kInteger, number_pages(kInteger, values), rows);
      EXPECT_EQ(file.reader().integers("x"),
                std::vector<std::int64_t>(values.begin(), values.end()))
          << rows << " rows of " << distinct;
    }
  }
}

TEST(PageEncoding, NumbersKeepEveryBit) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  std::vector<double> values{0.0, -0.0, inf, -inf, 1e-310, 0.1, -1.5, 1.7e308};
  for (int i = 0; i < 10; ++i) values.insert(values.end(), values.begin(), values.begin() + 8);
  const OneColumn file(kNumber, number_pages(kNumber, bits_of(values)), values.size());
  EXPECT_EQ(bits_of(file.reader().numbers("x")), bits_of(values));
}

TEST(PageEncoding, NanIsNullWhereNullsAreAllowed) {
  for (const int every : {1, 2, 3, 1000}) {
    for (const bool repeating : {true, false}) {
      std::vector<double> values;
      for (int i = 0; i < 2000; ++i) {
        values.push_back(i % every == 0 ? NAN : (repeating ? i % 5 : std::sqrt(i)));
      }
      const ColumnPages pages = number_pages(kNullableNumber, bits_of(values));
      EXPECT_EQ(pages.nulls, 1 + 1999 / every);
      const OneColumn file(kNullableNumber, pages, values.size());
      const auto read = file.reader().numbers("x");
      ASSERT_EQ(read.size(), values.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        EXPECT_TRUE(read[i] == values[i] || (std::isnan(read[i]) && std::isnan(values[i]))) << i;
      }
    }
  }
}

TEST(PageEncoding, TheRangeIsThatOfTheValues) {
  const auto range = [](const std::vector<double>& values) {
    const ColumnPages pages = number_pages(kNullableNumber, bits_of(values));
    EXPECT_TRUE(pages.range.has_value());
    return std::pair(number_in(pages.range->least), number_in(pages.range->greatest));
  };
  EXPECT_EQ(range({3, NAN, -2, 5}), std::pair(-2.0, 5.0));
  EXPECT_TRUE(std::signbit(range({0.0, 1.0}).first));
  EXPECT_FALSE(number_pages(kNullableNumber, bits_of({NAN})).range);
  EXPECT_FALSE(number_pages(kNumber, bits_of({NAN, 1})).range);
}

TEST(PageEncoding, TheRangeOfTextsIsThatOfThoseThatOccur) {
  const std::vector<std::string_view> dictionary{"a", "m", "\xC3\xBC", "z", "k"};
  const Column column{.name = "x", .type = ColumnType::text, .nullable = true};
  const auto range = [&](const std::vector<std::int32_t>& codes) {
    const ColumnPages pages = text_pages(column, codes, dictionary);
    return pages.range ? pages.range->least + " " + pages.range->greatest : "none";
  };
  EXPECT_EQ(range({1, 4, -1, 1}), "k m");
  EXPECT_EQ(range({0, 3}), "a z");
  EXPECT_EQ(range({3, 2}), "z \xC3\xBC") << "bytes are unsigned";
  EXPECT_EQ(range({-1, -1}), "none");
  EXPECT_FALSE(constant_text(std::string(1000, 'x'), 5).range) << "too long for a footer";
}

TEST(PageEncoding, TextsByCodeWithNulls) {
  const std::vector<std::string_view> dictionary{"", "one", "two \"quoted\"", "drei: \xC3\xBC"};
  std::vector<std::int32_t> codes;
  for (const std::uint64_t value : mixed(3000, 5, 9)) codes.push_back(std::int32_t(value) - 1);
  const OneColumn file(kNullableText, text_pages(kNullableText, codes, dictionary), codes.size());
  const auto read = file.reader().texts("x");
  ASSERT_EQ(read.size(), codes.size());
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] < 0) {
      EXPECT_EQ(read[i], std::nullopt);
    } else {
      EXPECT_EQ(read[i], dictionary[std::size_t(codes[i])]);
    }
  }
}

TEST(PageEncoding, OnlyNullsAndNoDictionary) {
  const std::vector<std::int32_t> codes(100, -1);
  const OneColumn file(kNullableText, text_pages(kNullableText, codes, {}), codes.size());
  EXPECT_EQ(file.reader().texts("x"), std::vector<std::optional<std::string>>(100));
}

TEST(PageEncoding, ConstantsAndRepeats) {
  const OneColumn number(kInteger, constant_number(kInteger, 42, 1000), 1000);
  EXPECT_EQ(number.reader().integers("x"), std::vector<std::int64_t>(1000, 42));
  const OneColumn text(kText, constant_text("same", 1000), 1000);
  EXPECT_EQ(text.reader().texts("x"), std::vector<std::optional<std::string>>(1000, "same"));
  const std::vector<std::uint64_t> values{5, 6, 7};
  const std::vector<std::uint32_t> counts{2, 0, 20};
  const OneColumn repeated(kInteger, repeated_numbers(values, counts), 22);
  std::vector<std::int64_t> expected(22, 7);
  expected[0] = expected[1] = 5;
  EXPECT_EQ(repeated.reader().integers("x"), expected);
}

TEST(PageEncoding, BooleansAreBits) {
  const Column column{.name = "x", .type = ColumnType::boolean, .has_range = false};
  std::vector<std::uint8_t> values;
  for (const std::uint64_t value : mixed(1003, 2, 4)) values.push_back(std::uint8_t(value));
  const OneColumn file(column, boolean_pages(column, values), values.size());
  EXPECT_EQ(file.reader().booleans("x"), values);
}

TEST(PageEncoding, NullsOfEveryType) {
  for (const std::size_t rows : {1U, 8U, 1003U}) {
    const Column flag{.name = "x", .type = ColumnType::boolean, .nullable = true};
    std::vector<std::uint8_t> flags;
    for (const std::uint64_t value : mixed(rows, 3, 4)) flags.push_back(std::uint8_t(value));
    EXPECT_EQ(OneColumn(flag, boolean_pages(flag, flags), rows).reader().booleans("x"), flags);
    const std::vector<std::uint8_t> none(rows, kNullBoolean);
    EXPECT_EQ(OneColumn(flag, boolean_pages(flag, none), rows).reader().booleans("x"), none);

    // A negative integer has the bits of a NaN, and is no null.
    const Column whole{.name = "x", .type = ColumnType::int64, .nullable = true};
    std::vector<std::int64_t> numbers;
    for (const std::uint64_t value : mixed(rows, 5, 7)) {
      numbers.push_back(value == 0 ? kNullInteger : -std::int64_t(value));
    }
    const std::vector<std::uint64_t> bits(numbers.begin(), numbers.end());
    EXPECT_EQ(OneColumn(whole, number_pages(whole, bits), rows).reader().integers("x"), numbers);
  }
}

TEST(PageEncoding, ConstantsCostNothingARow) {
  const Column flag{.name = "x", .type = ColumnType::boolean};
  for (const std::size_t rows : {1U, 7U, 8U, 1003U}) {
    for (const bool value : {false, true}) {
      EXPECT_EQ(OneColumn(flag, constant_boolean(value, rows), rows).reader().booleans("x"),
                std::vector<std::uint8_t>(rows, value));
    }
  }
  const Column figure{.name = "x", .nullable = true};
  for (const double value : OneColumn(figure, null_pages(100), 100).reader().numbers("x")) {
    EXPECT_TRUE(std::isnan(value));
  }
}

// Values that come in a fixed order, as kernels do, and values that leave it.
TEST(PageEncoding, RepeatedSequencesComeBack) {
  const Column column{.name = "x", .type = ColumnType::int64};
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < 5000; ++i) {
    values.push_back(i % 777 == 0 ? i : (i % 18) * (i % 18) % 11);
  }
  const std::vector<std::uint64_t> bits(values.begin(), values.end());
  const ColumnPages pages = number_pages(column, bits);
  EXPECT_EQ(pages.encoding, Encoding::dictionary);
  EXPECT_EQ(OneColumn(column, pages, values.size()).reader().integers("x"), values);
}

TEST(RunLength, FollowsTheFormatsExamples) {
  // The specification's own example: 0 to 7 in three bits are 88 C6 FA.
  const std::vector<std::int8_t> codes{0, 1, 2, 3, 4, 5, 6, 7};
  std::vector<std::uint8_t> out;
  put_hybrid(out, std::span<const std::int8_t>(codes), 3);
  EXPECT_EQ(out, (std::vector<std::uint8_t>{0x03, 0x88, 0xC6, 0xFA}));
  out.clear();
  put_run(out, 4, 100, 3);
  EXPECT_EQ(out, (std::vector<std::uint8_t>{0xC8, 0x01, 0x04}));
  EXPECT_EQ(code_width(1), 1);
  EXPECT_EQ(code_width(2), 1);
  EXPECT_EQ(code_width(3), 2);
  EXPECT_EQ(code_width(256), 8);
  EXPECT_EQ(code_width(257), 9);
}

}  // namespace
}  // namespace results

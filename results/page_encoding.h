// The values of a column as the bytes of Parquet pages, without Arrow's arrays between: a constant
// column costs nothing a row, and columns that repeat are never hashed when their codes are known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/leaves/leaves.h"
#include "results/schema.h"

namespace results {

using PageBytes = std::vector<std::uint8_t>;

// What the data page holds: codes into the dictionary, or the values. Both are as old as the format:
// every reader knows them.
enum class Encoding : std::uint8_t { dictionary, plain };

// The pages of one column, not compressed yet.
struct ColumnPages {
  Encoding encoding = Encoding::plain;
  PageBytes dictionary;
  std::int32_t dictionary_values = 0;
  PageBytes data;
  std::int64_t nulls = 0;
  // The least and the greatest value as the footer has them: the bytes of a number, or a text.
  struct Range {
    std::string least;
    std::string greatest;
  };
  std::optional<Range> range;
};

// Integers, or doubles by their bits. In a nullable column kNullInteger or NaN is null. A sample of the
// values decides on the encoding.
ColumnPages number_pages(const Column& column, std::span<const std::uint64_t> bits);
// In a nullable column kNullBoolean is null.
ColumnPages boolean_pages(const Column& column, std::span<const std::uint8_t> values);
// Texts by their number in `dictionary`; a negative code is null.
ColumnPages text_pages(const Column& column, std::span<const std::int32_t> codes,
                       std::span<const std::string_view> dictionary);
ColumnPages text_pages(const Column& column, std::span<const std::int8_t> codes,
                       std::span<const std::string_view> dictionary);
ColumnPages key_pages(std::span<const engine::Key> keys);

// One value in every row.
ColumnPages constant_number(const Column& column, std::uint64_t bits, std::size_t rows);
ColumnPages constant_text(std::string_view text, std::size_t rows);
ColumnPages constant_boolean(bool value, std::size_t rows);
// No value in any row of a nullable column.
ColumnPages null_pages(std::size_t rows);

// Value i of the first argument repeated counts[i] times.
ColumnPages repeated_numbers(std::span<const std::uint64_t> bits,
                             std::span<const std::uint32_t> counts);
ColumnPages repeated_keys(std::span<const engine::Key> keys, std::span<const std::uint32_t> counts);

}  // namespace results

#include "results/page_encoding.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "results/run_length.h"
#include "results/value_codes.h"

namespace results {
namespace {

constexpr std::size_t kHexDigits = 32;

template <class T>
void put(PageBytes& out, const T& value) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

void put_text(PageBytes& out, std::string_view text) {
  put(out, std::uint32_t(text.size()));
  out.insert(out.end(), text.begin(), text.end());
}

void put_numbers(PageBytes& out, std::span<const std::uint64_t> bits) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(bits.data());
  out.insert(out.end(), bytes, bytes + bits.size_bytes());
}

// The levels of a nullable column: a length, then one bit a row in hybrid form.
void put_levels(PageBytes& out, std::span<const std::int8_t> levels) {
  const std::size_t start = out.size();
  put(out, std::uint32_t{0});
  put_hybrid(out, levels, 1);
  const auto length = std::uint32_t(out.size() - start - sizeof(std::uint32_t));
  std::memcpy(out.data() + start, &length, sizeof length);
}

void put_equal_levels(PageBytes& out, std::uint32_t level, std::size_t rows) {
  PageBytes run;
  put_run(run, level, rows, 1);
  put(out, std::uint32_t(run.size()));
  out.insert(out.end(), run.begin(), run.end());
}

template <class Code>
void put_codes(PageBytes& out, std::span<const Code> codes, std::size_t dictionary) {
  const int width = code_width(dictionary);
  out.push_back(std::uint8_t(width));
  put_hybrid(out, codes, width);
}

Encoding encoding_for(std::span<const std::uint64_t> bits) {
  constexpr std::size_t kSample = 256;
  if (bits.size() < 2 * kSample) return Encoding::dictionary;
  // Places spread by the golden ratio: even steps would fall in with the grid's own period.
  std::array<std::uint64_t, kSample> sample;
  for (std::size_t i = 0; i < kSample; ++i) {
    sample[i] = bits[std::size_t(((i + 1) * kGolden >> 32) * bits.size() >> 32)];
  }
  std::ranges::sort(sample);
  const auto distinct = std::size_t(std::ranges::unique(sample).begin() - sample.begin());
  return distinct <= kSample / 2 ? Encoding::dictionary : Encoding::plain;
}

template <class T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

template <class T>
void set_range(ColumnPages& pages, std::span<const std::uint64_t> bits) {
  T least = std::numeric_limits<T>::max();
  T greatest = std::numeric_limits<T>::lowest();
  // Without a way out of the loop, so that it takes several values at once.
  std::uint64_t unordered = 0;
  for (const std::uint64_t value : bits) {
    const T number = std::bit_cast<T>(value);
    unordered |= number != number ? 1 : 0;
    least = number < least ? number : least;
    greatest = greatest < number ? number : greatest;
  }
  if (unordered != 0) return;  // a range cannot speak of NaN
  if constexpr (std::is_same_v<T, double>) {
    // The format's rule: a zero that bounds a range stands for both zeros.
    if (least == 0) least = -0.0;
    if (greatest == 0) greatest = 0.0;
  }
  pages.range = {bytes_of(least), bytes_of(greatest)};
}

void add_range(const Column& column, ColumnPages& pages, std::span<const std::uint64_t> bits) {
  if (!column.has_range || bits.empty()) return;
  if (column.type == ColumnType::float64) {
    set_range<double>(pages, bits);
  } else {
    set_range<std::int64_t>(pages, bits);
  }
}

// Every reader reads a footer whole, so no long texts go into it.
constexpr std::size_t kLongestInRange = 256;

void add_text_range(ColumnPages& pages, std::string_view least, std::string_view greatest) {
  if (std::max(least.size(), greatest.size()) > kLongestInRange) return;
  pages.range = {std::string(least), std::string(greatest)};
}

// The range of the texts that occur, of which a dictionary may have more.
template <class Code>
void add_text_range(ColumnPages& pages, std::span<const Code> codes,
                    std::span<const std::string_view> dictionary) {
  std::vector<std::uint8_t> occurs(dictionary.size());
  for (const Code code : codes) occurs[std::size_t(code)] = 1;
  const std::string_view* least = nullptr;
  const std::string_view* greatest = nullptr;
  for (std::size_t i = 0; i < dictionary.size(); ++i) {
    if (occurs[i] == 0) continue;
    if (least == nullptr || dictionary[i] < *least) least = &dictionary[i];
    if (greatest == nullptr || dictionary[i] > *greatest) greatest = &dictionary[i];
  }
  if (least != nullptr) add_text_range(pages, *least, *greatest);
}

std::string hex(const engine::Key& key) {
  std::string text(kHexDigits, '0');
  engine::write_hex(key, text.data());
  return text;
}

// Keys are in the order of their digits.
void add_key_range(ColumnPages& pages, std::span<const engine::Key> keys) {
  if (keys.empty()) return;
  const auto [least, greatest] = std::ranges::minmax_element(keys);
  pages.range = {hex(*least), hex(*greatest)};
}

// The values that are not null; their levels go to the page.
template <class T, class IsNull>
std::vector<T> without_nulls(std::span<const T> all, IsNull is_null, PageBytes& page) {
  std::vector<T> values;
  values.reserve(all.size());
  std::vector<std::int8_t> levels(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    levels[i] = is_null(all[i]) ? 0 : 1;
    if (levels[i] != 0) values.push_back(all[i]);
  }
  put_levels(page, levels);
  return values;
}

// Puts the levels of a nullable column and leaves what is not null in `values`, which may then be in
// `present`. Returns the number of nulls.
template <class IsNull>
std::int64_t take_nulls(std::span<const std::uint64_t>& values, std::vector<std::uint64_t>& present,
                        IsNull is_null, PageBytes& page) {
  const auto nulls = std::ranges::count_if(values, is_null);
  if (nulls == 0) {
    put_equal_levels(page, 1, values.size());
  } else {
    present = without_nulls(values, is_null, page);
    values = present;
  }
  return nulls;
}

template <class Code>
ColumnPages coded_texts(const Column& column, std::span<const Code> codes,
                        std::span<const std::string_view> dictionary) {
  ColumnPages pages;
  if (!dictionary.empty()) pages.encoding = Encoding::dictionary;
  for (const std::string_view text : dictionary) put_text(pages.dictionary, text);
  pages.dictionary_values = std::int32_t(dictionary.size());
  if (!column.nullable) {
    put_codes(pages.data, codes, dictionary.size());
    if (column.has_range) add_text_range(pages, codes, dictionary);
    return pages;
  }
  std::vector<std::int8_t> levels(codes.size());
  std::vector<Code> present;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    levels[i] = codes[i] < 0 ? 0 : 1;
    if (codes[i] >= 0) present.push_back(codes[i]);
  }
  pages.nulls = std::int64_t(codes.size() - present.size());
  put_levels(pages.data, levels);
  if (!dictionary.empty()) {
    put_codes(pages.data, std::span<const Code>(present), dictionary.size());
  }
  if (column.has_range) add_text_range(pages, std::span<const Code>(present), dictionary);
  return pages;
}

// The values that occur at least once.
template <class T>
std::vector<T> repeated_at_all(std::span<const T> values, std::span<const std::uint32_t> counts) {
  std::vector<T> some;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (counts[i] > 0) some.push_back(values[i]);
  }
  return some;
}

void put_repeated(PageBytes& out, std::span<const std::uint32_t> counts) {
  const int width = code_width(counts.size());
  out.push_back(std::uint8_t(width));
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) put_run(out, std::uint32_t(i), counts[i], width);
  }
}

void put_keys(PageBytes& out, std::span<const engine::Key> keys) {
  const std::size_t start = out.size();
  out.resize(start + keys.size() * (sizeof(std::uint32_t) + kHexDigits));
  std::uint8_t* to = out.data() + start;
  for (const engine::Key& key : keys) {
    constexpr std::uint32_t length = kHexDigits;
    std::memcpy(to, &length, sizeof length);
    engine::write_hex(key, reinterpret_cast<char*>(to + sizeof length));
    to += sizeof length + kHexDigits;
  }
}

}  // namespace

ColumnPages number_pages(const Column& column, std::span<const std::uint64_t> bits) {
  ColumnPages pages;
  std::vector<std::uint64_t> present;
  if (column.nullable) {
    const std::size_t rows = bits.size();
    const auto nan = [](std::uint64_t value) { return std::isnan(std::bit_cast<double>(value)); };
    const auto none = [](std::uint64_t value) { return value == std::uint64_t(kNullInteger); };
    pages.nulls = column.type == ColumnType::float64 ? take_nulls(bits, present, nan, pages.data)
                                                     : take_nulls(bits, present, none, pages.data);
    if (std::size_t(pages.nulls) == rows) return null_pages(rows);
  }
  pages.encoding = encoding_for(bits);
  if (pages.encoding != Encoding::dictionary) {
    put_numbers(pages.data, bits);
    add_range(column, pages, bits);
    return pages;
  }
  ValueCodes dictionary;
  std::vector<std::int32_t> codes(bits.size());
  for (std::size_t i = 0; i < bits.size(); ++i) codes[i] = dictionary.code(bits[i]);
  put_numbers(pages.dictionary, dictionary.values());
  pages.dictionary_values = std::int32_t(dictionary.values().size());
  put_codes(pages.data, std::span<const std::int32_t>(codes), dictionary.values().size());
  add_range(column, pages, dictionary.values());
  return pages;
}

ColumnPages boolean_pages(const Column& column, std::span<const std::uint8_t> values) {
  ColumnPages pages;
  std::vector<std::uint8_t> present;
  if (column.nullable) {
    const std::size_t rows = values.size();
    const auto none = [](std::uint8_t value) { return value == kNullBoolean; };
    present = without_nulls(values, none, pages.data);
    values = present;
    pages.nulls = std::int64_t(rows - values.size());
    if (values.empty()) return null_pages(rows);
  }
  const std::size_t start = pages.data.size();
  pages.data.resize(start + (values.size() + 7) / 8);
  bool all = true;
  bool any = false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool value = values[i] != 0;
    std::uint8_t& byte = pages.data[start + i / 8];
    byte = std::uint8_t(byte | value << (i % 8));
    all = all && value;
    any = any || value;
  }
  if (!values.empty()) pages.range = {bytes_of(all), bytes_of(any)};
  return pages;
}

ColumnPages text_pages(const Column& column, std::span<const std::int32_t> codes,
                       std::span<const std::string_view> dictionary) {
  return coded_texts(column, codes, dictionary);
}
ColumnPages text_pages(const Column& column, std::span<const std::int8_t> codes,
                       std::span<const std::string_view> dictionary) {
  return coded_texts(column, codes, dictionary);
}

ColumnPages key_pages(std::span<const engine::Key> keys) {
  ColumnPages pages;
  put_keys(pages.data, keys);
  add_key_range(pages, keys);
  return pages;
}

ColumnPages constant_number(const Column& column, std::uint64_t bits, std::size_t rows) {
  ColumnPages pages{.encoding = Encoding::dictionary};
  put(pages.dictionary, bits);
  pages.dictionary_values = 1;
  pages.data.push_back(std::uint8_t(code_width(1)));
  put_run(pages.data, 0, rows, code_width(1));
  add_range(column, pages, std::span(&bits, 1));
  return pages;
}

ColumnPages constant_text(std::string_view text, std::size_t rows) {
  ColumnPages pages{.encoding = Encoding::dictionary};
  put_text(pages.dictionary, text);
  pages.dictionary_values = 1;
  pages.data.push_back(std::uint8_t(code_width(1)));
  put_run(pages.data, 0, rows, code_width(1));
  add_text_range(pages, text, text);
  return pages;
}

ColumnPages constant_boolean(bool value, std::size_t rows) {
  ColumnPages pages;
  pages.data.assign((rows + 7) / 8, std::uint8_t(value ? 0xFF : 0));
  if (value && rows % 8 != 0) pages.data.back() = std::uint8_t(0xFF >> (8 - rows % 8));
  if (rows > 0) pages.range = {bytes_of(value), bytes_of(value)};
  return pages;
}

ColumnPages null_pages(std::size_t rows) {
  ColumnPages pages;
  pages.nulls = std::int64_t(rows);
  put_equal_levels(pages.data, 0, rows);
  return pages;
}

ColumnPages repeated_numbers(std::span<const std::uint64_t> bits,
                             std::span<const std::uint32_t> counts) {
  ColumnPages pages{.encoding = Encoding::dictionary};
  put_numbers(pages.dictionary, bits);
  pages.dictionary_values = std::int32_t(bits.size());
  put_repeated(pages.data, counts);
  const std::vector<std::uint64_t> some = repeated_at_all(bits, counts);
  if (!some.empty()) set_range<std::int64_t>(pages, some);
  return pages;
}

ColumnPages repeated_keys(std::span<const engine::Key> keys,
                          std::span<const std::uint32_t> counts) {
  ColumnPages pages{.encoding = Encoding::dictionary};
  put_keys(pages.dictionary, keys);
  pages.dictionary_values = std::int32_t(keys.size());
  put_repeated(pages.data, counts);
  add_key_range(pages, repeated_at_all(keys, counts));
  return pages;
}

}  // namespace results

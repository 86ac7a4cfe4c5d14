#include "results/arrow_arrays.h"

#include <arrow/api.h>
#include <arrow/util/bit_util.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/base/check.h"

namespace results {
namespace {

constexpr std::size_t kSample = 256;
constexpr std::size_t kHexDigits = 32;

template <class T>
T must(arrow::Result<T> result) {
  engine::check(result.ok(), result.status().ToString());
  return std::move(result).ValueUnsafe();
}

std::shared_ptr<arrow::Buffer> allocate(std::size_t bytes) {
  return must(arrow::AllocateBuffer(std::int64_t(bytes)));
}

std::shared_ptr<arrow::Buffer> buffer_of(const std::shared_ptr<void>& owner) {
  return std::static_pointer_cast<arrow::Buffer>(owner);
}

// Clear bits where `absent` says so; no bitmap when it never does.
template <class Absent>
std::shared_ptr<arrow::Buffer> validity(std::size_t length, std::int64_t nulls, Absent absent) {
  if (nulls == 0) return nullptr;
  auto bitmap = allocate(std::size_t(arrow::bit_util::BytesForBits(std::int64_t(length))));
  std::fill_n(bitmap->mutable_data(), bitmap->size(), std::uint8_t{0});
  for (std::size_t i = 0; i < length; ++i) {
    if (!absent(i)) arrow::bit_util::SetBit(bitmap->mutable_data(), std::int64_t(i));
  }
  return bitmap;
}

template <class Code>
ArrayPtr dictionary_array(Values<Code> codes, const ArrayPtr& dictionary,
                          const std::shared_ptr<arrow::DataType>& code_type) {
  const std::int64_t nulls =
      std::count_if(codes.data(), codes.data() + codes.size(), [](Code c) { return c < 0; });
  auto bitmap = validity(codes.size(), nulls, [&codes](std::size_t i) { return codes[i] < 0; });
  const auto data = arrow::ArrayData::Make(arrow::dictionary(code_type, arrow::utf8()),
                                           std::int64_t(codes.size()),
                                           {std::move(bitmap), buffer_of(codes.owner)}, nulls);
  data->dictionary = dictionary->data();
  return arrow::MakeArray(data);
}

}  // namespace

template <class T>
Values<T>::Values(std::size_t length) : length_(length) {
  auto buffer = allocate(length * sizeof(T));
  data_ = reinterpret_cast<T*>(buffer->mutable_data());
  owner = std::move(buffer);
}

template <class T>
Values<T>::~Values() = default;

template <class T>
ArrayPtr Values<T>::take() && {
  return arrow::MakeArray(arrow::ArrayData::Make(arrow::CTypeTraits<T>::type_singleton(),
                                                 std::int64_t(length_), {nullptr, buffer_of(owner)},
                                                 0));
}

template class Values<double>;
template class Values<std::int64_t>;
template class Values<std::int32_t>;
template class Values<std::int8_t>;

ArrayPtr nullable_numbers(Values<double> values) {
  const std::int64_t nulls = std::count_if(values.data(), values.data() + values.size(),
                                           [](double v) { return std::isnan(v); });
  auto bitmap =
      validity(values.size(), nulls, [&values](std::size_t i) { return std::isnan(values[i]); });
  return arrow::MakeArray(arrow::ArrayData::Make(arrow::float64(), std::int64_t(values.size()),
                                                 {std::move(bitmap), buffer_of(values.owner)},
                                                 nulls));
}

ArrayPtr booleans(std::span<const std::uint8_t> values) {
  auto bits = allocate(std::size_t(arrow::bit_util::BytesForBits(std::int64_t(values.size()))));
  std::fill_n(bits->mutable_data(), bits->size(), std::uint8_t{0});
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != 0) arrow::bit_util::SetBit(bits->mutable_data(), std::int64_t(i));
  }
  return std::make_shared<arrow::BooleanArray>(std::int64_t(values.size()), std::move(bits));
}

ArrayPtr texts(const std::vector<std::string_view>& values) {
  arrow::StringBuilder builder;
  for (const std::string_view text : values) {
    const arrow::Status status = builder.Append(text);
    engine::check(status.ok(), "texts of a part fit an array");
  }
  return must(builder.Finish());
}

ArrayPtr hex_keys(std::span<const engine::Key> keys) {
  Values<std::int32_t> offsets(keys.size() + 1);
  auto digits = allocate(keys.size() * kHexDigits);
  char* out = reinterpret_cast<char*>(digits->mutable_data());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    offsets[i] = std::int32_t(i * kHexDigits);
    engine::write_hex(keys[i], out + i * kHexDigits);
  }
  offsets[keys.size()] = std::int32_t(keys.size() * kHexDigits);
  return std::make_shared<arrow::StringArray>(std::int64_t(keys.size()), buffer_of(offsets.owner),
                                              std::move(digits));
}

ArrayPtr coded_texts(Values<std::int32_t> codes, const ArrayPtr& dictionary) {
  return dictionary_array(std::move(codes), dictionary, arrow::int32());
}
ArrayPtr coded_texts(Values<std::int8_t> codes, const ArrayPtr& dictionary) {
  return dictionary_array(std::move(codes), dictionary, arrow::int8());
}

ArrayPtr constant_text(std::string_view text, std::size_t length) {
  Values<std::int8_t> codes(length);
  std::fill_n(codes.data(), length, std::int8_t{0});
  return coded_texts(std::move(codes), texts({text}));
}

Encoding encoding_of(const std::uint64_t* values, std::size_t length) {
  if (length < 2 * kSample) return Encoding::dictionary;
  // Places spread by the golden ratio: even steps would fall in with the grid's own period.
  std::array<std::uint64_t, kSample> sample;
  for (std::size_t i = 0; i < kSample; ++i) {
    const std::uint64_t spread = (i + 1) * 0x9E3779B97F4A7C15u;
    sample[i] = values[std::size_t((spread >> 32) * length >> 32)];
  }
  std::ranges::sort(sample);
  const auto distinct = std::ranges::unique(sample).begin() - sample.begin();
  return distinct > std::ptrdiff_t(kSample / 4) ? Encoding::plain : Encoding::dictionary;
}

}  // namespace results

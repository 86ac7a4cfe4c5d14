// Arrow arrays from plain values; the part of Arrow that both tables and the reader build on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/leaves.h"
#include "results/parquet_file.h"

namespace results {

using ArrayPtr = std::shared_ptr<arrow::Array>;

// Memory of Arrow's, to be filled and then made into an array without a copy.
template <class T>
class Values {
 public:
  explicit Values(std::size_t length);
  ~Values();
  T* data() { return data_; }
  T& operator[](std::size_t i) { return data_[i]; }
  std::size_t size() const { return length_; }
  ArrayPtr take() &&;  // as a column of numbers

  std::shared_ptr<void> owner;  // the arrow::Buffer

 private:
  T* data_ = nullptr;
  std::size_t length_ = 0;
};

// NaN becomes null.
ArrayPtr nullable_numbers(Values<double> values);
ArrayPtr booleans(std::span<const std::uint8_t> values);
ArrayPtr texts(const std::vector<std::string_view>& values);
ArrayPtr hex_keys(std::span<const engine::Key> keys);
// Texts by their number in `dictionary`; a negative code is null.
ArrayPtr coded_texts(Values<std::int32_t> codes, const ArrayPtr& dictionary);
ArrayPtr coded_texts(Values<std::int8_t> codes, const ArrayPtr& dictionary);
// The same text in every row.
ArrayPtr constant_text(std::string_view text, std::size_t length);

// Whether a dictionary pays, from a sample of the values.
Encoding encoding_of(const std::uint64_t* values, std::size_t length);

// Gives the codes in use new numbers, counted from zero in order of appearance.
class Renumbering {
 public:
  explicit Renumbering(std::size_t codes) : number_(codes, -1) {}
  std::int32_t operator()(std::size_t code) {
    std::int32_t& number = number_[code];
    if (number < 0) {
      number = std::int32_t(used_.size());
      used_.push_back(code);
    }
    return number;
  }
  const std::vector<std::size_t>& used() const { return used_; }

 private:
  std::vector<std::int32_t> number_;
  std::vector<std::size_t> used_;
};

}  // namespace results

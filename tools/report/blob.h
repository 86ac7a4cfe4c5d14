// Columns of numbers as text inside a page: little-endian arrays, deflated, in base64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tools {

std::string base64(std::string_view bytes);

// The arrays of a page. A page reads them by their numbers, each when it first needs it.
class Blobs {
 public:
  // The number of the new array. A page reads float32: seven digits are more than a chart shows.
  std::size_t add(const std::vector<double>& values);
  std::size_t add_exact(const std::vector<double>& values);
  // One, two or four bytes a row, as the number of names needs; the greatest value stands for none.
  std::size_t add_codes(const std::vector<std::uint32_t>& codes, std::size_t names);

  // What a page needs to know of each: its type, and how it is packed.
  struct Blob {
    std::string_view type;  // "f32", "f64", "u8", "u16", "u32"
    std::string text;
  };
  const std::vector<Blob>& blobs() const { return blobs_; }

 private:
  template <class T, class Value>
  std::size_t pack(std::string_view type, const std::vector<Value>& values);

  std::vector<Blob> blobs_;
};

}  // namespace tools

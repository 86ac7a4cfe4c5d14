#include "tools/report/blob.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <new>

#include "tools/query/points.h"

namespace tools {
namespace {

static_assert(std::endian::native == std::endian::little, "pages hold little-endian arrays");

// Fast rather than small; other levels were not compared.
constexpr int kLevel = 3;

// zlib's own format, which browsers call "deflate".
std::string deflated(std::string_view bytes) {
  uLongf size = compressBound(uLong(bytes.size()));
  std::string packed(size, '\0');
  if (compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                reinterpret_cast<const Bytef*>(bytes.data()), uLong(bytes.size()),
                kLevel) != Z_OK) {
    throw std::bad_alloc();  // the buffer is large enough, so nothing else can be wrong
  }
  packed.resize(size);
  return packed;
}

}  // namespace

std::string base64(std::string_view bytes) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      bits = bits << 8U | (k < left ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text += k <= left ? kDigits[bits >> (18 - 6 * k) & 63U] : '=';
    }
  }
  return text;
}

template <class T, class Value>
std::size_t Blobs::pack(std::string_view type, const std::vector<Value>& values) {
  std::vector<T> narrow;
  narrow.reserve(values.size());
  for (const Value value : values) narrow.push_back(static_cast<T>(value));
  const std::string_view bytes(reinterpret_cast<const char*>(narrow.data()),
                               narrow.size() * sizeof(T));
  blobs_.push_back({type, base64(deflated(bytes))});
  return blobs_.size() - 1;
}

std::size_t Blobs::add(const std::vector<double>& values) { return pack<float>("f32", values); }
std::size_t Blobs::add_exact(const std::vector<double>& values) {
  return pack<double>("f64", values);
}

std::size_t Blobs::add_codes(const std::vector<std::uint32_t>& codes, std::size_t names) {
  // Narrowing keeps "none", which is all ones, the greatest value of the narrower type.
  static_assert(Coded::kNone == std::numeric_limits<std::uint32_t>::max());
  if (names < std::numeric_limits<std::uint8_t>::max()) return pack<std::uint8_t>("u8", codes);
  if (names < std::numeric_limits<std::uint16_t>::max()) return pack<std::uint16_t>("u16", codes);
  return pack<std::uint32_t>("u32", codes);
}

}  // namespace tools

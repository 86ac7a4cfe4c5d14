// Parquet's hybrid of runs and bit-packed values, which codes of dictionaries and nulls are stored in
// (https://parquet.apache.org/docs/file-format/data-pages/encodings/).
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace results {

// Bits that hold any code of a dictionary of this many values; readers want at least one.
inline int code_width(std::size_t values) {
  return std::max(1, int(std::bit_width(values < 2 ? 1 : values - 1)));
}

inline void put_varint(std::vector<std::uint8_t>& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(std::uint8_t(value | 0x80));
  out.push_back(std::uint8_t(value));
}

inline void put_run(std::vector<std::uint8_t>& out, std::uint32_t value, std::size_t count,
                    int width) {
  put_varint(out, std::uint64_t(count) << 1);
  for (int bits = 0; bits < width; bits += 8) out.push_back(std::uint8_t(value >> bits));
}

// Groups of eight values, each in `width` bits; the last group is filled up with zeros.
template <class Code>
void put_packed(std::vector<std::uint8_t>& out, std::span<const Code> codes, int width) {
  const std::size_t groups = (codes.size() + 7) / 8;
  if (groups == 0) return;
  put_varint(out, groups << 1 | 1);
  const std::size_t start = out.size();
  out.resize(start + groups * std::size_t(width));
  std::uint8_t* to = out.data() + start;
  if (width <= 8) {
    // A group fits in one word.
    const Code* from = codes.data();
    for (const Code* const last = from + codes.size() / 8 * 8; from != last; from += 8) {
      std::uint64_t group = 0;
      for (int i = 0; i < 8; ++i) {
        group |= std::uint64_t(std::make_unsigned_t<Code>(from[i])) << (i * width);
      }
      for (int i = 0; i < width; ++i) *to++ = std::uint8_t(group >> (8 * i));
    }
    codes = codes.subspan(codes.size() / 8 * 8);
  }
  std::uint64_t waiting = 0;
  int bits = 0;
  for (const Code code : codes) {
    waiting |= std::uint64_t(std::make_unsigned_t<Code>(code)) << bits;
    bits += width;
    while (bits >= 8) {
      *to++ = std::uint8_t(waiting);
      waiting >>= 8;
      bits -= 8;
    }
  }
  if (bits > 0) *to = std::uint8_t(waiting);
}

template <class Code>
void put_hybrid(std::vector<std::uint8_t>& out, std::span<const Code> codes, int width) {
  // Shorter runs are packed with their neighbours: a run's header costs as much as they do.
  constexpr std::size_t kLeastRun = 16;
  // Where values not written yet begin. A run comes after whole groups of them.
  std::size_t packed = 0;
  for (std::size_t i = 0; i + kLeastRun <= codes.size();) {
    std::size_t end = i + 1;
    while (end < codes.size() && codes[end] == codes[i]) ++end;
    if (end - i < kLeastRun) {
      i += 8;
      continue;
    }
    put_packed(out, codes.subspan(packed, i - packed), width);
    put_run(out, std::uint32_t(codes[i]), end - i, width);
    packed = i = end;
  }
  put_packed(out, codes.subspan(packed), width);
}

}  // namespace results

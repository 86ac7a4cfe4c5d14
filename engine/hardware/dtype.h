// Number formats: how wide a stored value is, and which arithmetic peak multiplies it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace engine {

enum class Dtype : std::uint8_t { fp32, bf16, fp16, fp8, int8, int4, fp4 };

constexpr std::array<std::string_view, 7> enum_names(Dtype) {
  return {"fp32", "bf16", "fp16", "fp8", "int8", "int4", "fp4"};
}

constexpr double bytes_of(Dtype dtype) {
  constexpr std::array<double, 7> widths{4, 2, 2, 1, 1, 0.5, 0.5};
  return widths[static_cast<std::size_t>(dtype)];
}

// Formats that hold a block of values with a scale of their own.
constexpr bool has_scales(Dtype dtype) {
  return dtype == Dtype::fp8 || dtype == Dtype::int8 || dtype == Dtype::int4 || dtype == Dtype::fp4;
}

// Bytes of stored weights: `group` of them share a 16-bit scale where the format has scales.
constexpr double stored_bytes(double weights, Dtype dtype, std::int64_t group) {
  const double scales = has_scales(dtype) ? weights / double(group) * 2 : 0;
  return weights * bytes_of(dtype) + scales;
}

}  // namespace engine

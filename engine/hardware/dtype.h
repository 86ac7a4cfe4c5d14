// Number formats: how wide a stored value is, and which arithmetic peak multiplies it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace engine {

// tf32 is kept in 32 bits, of which matrix units multiply 19.
enum class Dtype : std::uint8_t { fp32, tf32, bf16, fp16, fp8, int8, int4, fp4 };

constexpr std::array<std::string_view, 8> enum_names(Dtype) {
  return {"fp32", "tf32", "bf16", "fp16", "fp8", "int8", "int4", "fp4"};
}

constexpr double bytes_of(Dtype dtype) {
  constexpr std::array<double, 8> widths{4, 4, 2, 2, 1, 1, 0.5, 0.5};
  return widths[static_cast<std::size_t>(dtype)];
}

// Formats of 32 bits: what is multiplied in them is kept, passed on and summed up in them.
constexpr bool is_wide(Dtype dtype) { return bytes_of(dtype) == 4; }

// What is left in the model's own format whatever the rest is stored in: 16 bits, or those that activations have if they are wider.
constexpr Dtype unquantized(Dtype activations) {
  return is_wide(activations) ? activations : Dtype::bf16;
}

// Formats that hold a block of values with a scale of their own.
constexpr bool has_scales(Dtype dtype) {
  return dtype == Dtype::fp8 || dtype == Dtype::int8 || dtype == Dtype::int4 || dtype == Dtype::fp4;
}

// fp8 has a scale for each square block of weights up to this size, above it one for a channel or a tensor.
inline constexpr std::int64_t kLargestBlock = 256;

// Bytes of the scale of one weight: integers have 16 bits a group of a row (GPTQ, AWQ); fp4 and groups of fp8 that are
// as small have 8 (the OCP microscaling formats, NVFP4); larger blocks of fp8 are squares with 32 bits (DeepSeek).
constexpr double scale_bytes(Dtype dtype, std::int64_t group) {
  const double count = double(group);
  if (!has_scales(dtype)) return 0;
  if (dtype == Dtype::int8 || dtype == Dtype::int4) return 2 / count;
  if (dtype == Dtype::fp4 || group <= 32) return 1 / count;
  return group <= kLargestBlock ? 4 / (count * count) : 4 / count;
}

// Of stored weights, of which `group` share a scale.
constexpr double stored_bytes(double weights, Dtype dtype, std::int64_t group) {
  return weights * (bytes_of(dtype) + scale_bytes(dtype, group));
}

}  // namespace engine

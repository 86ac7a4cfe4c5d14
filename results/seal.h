// Text that carries its own checksum, so that a flipped bit shows without a second file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace results {

// XXH3, 64 bits.
std::uint64_t checksum_of(std::string_view bytes);
std::string checksum_text(std::uint64_t checksum);  // 16 hexadecimal digits

// A line of JSON: '{"a":1}' becomes '{"a":1,"line_xxh3":"0123456789abcdef"}'.
std::string sealed_line(std::string object);
enum class Seal : std::uint8_t { holds, broken, absent };
Seal seal_of_line(std::string_view line);

// A text whose comments start with '#': a last line states the checksum of all before it.
std::string sealed_text(std::string text);
// The text without its last line, or nothing where the checksum is absent or does not hold.
std::optional<std::string> unsealed_text(std::string_view text);

}  // namespace results

#include "results/seal.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace results {
namespace {

constexpr std::string_view kLineSeal = ",\"line_xxh3\":\"";
constexpr std::string_view kTextSeal = "# xxh3 of all lines above: ";
constexpr std::size_t kDigits = 16;
// What follows the digits: a quote and a brace, or the end of the line.
constexpr std::size_t kLineEnd = 2;

}  // namespace

std::uint64_t checksum_of(std::string_view bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::string checksum_text(std::uint64_t checksum) { return fmt::format("{:016x}", checksum); }

std::string sealed_line(std::string object) {
  const std::string digits = checksum_text(checksum_of(object));
  object.pop_back();  // its closing brace
  return object.append(kLineSeal).append(digits).append("\"}");
}

Seal seal_of_line(std::string_view line) {
  constexpr std::size_t length = kLineSeal.size() + kDigits + kLineEnd;
  if (line.size() < length || !line.substr(line.size() - length).starts_with(kLineSeal)) {
    return Seal::absent;
  }
  const std::string object = std::string(line.substr(0, line.size() - length)) + "}";
  return sealed_line(object) == line ? Seal::holds : Seal::broken;
}

std::string sealed_text(std::string text) {
  const std::string digits = checksum_text(checksum_of(text));
  return text.append(kTextSeal).append(digits).append("\n");
}

std::optional<std::string> unsealed_text(std::string_view text) {
  constexpr std::size_t length = kTextSeal.size() + kDigits + 1;
  if (text.size() < length) return std::nullopt;
  std::string body(text.substr(0, text.size() - length));
  if (sealed_text(body) != text) return std::nullopt;
  return body;
}

}  // namespace results

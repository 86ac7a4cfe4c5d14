#include "tools/import/wire_message.h"

namespace tools {
namespace {

// The low three bits of a field's key.
enum WireType : std::uint64_t { kVarint = 0, kEightBytes = 1, kLength = 2, kFourBytes = 5 };

}  // namespace

// Seven bits a byte, the lowest first; the eighth says that there is more.
std::optional<std::uint64_t> WireReader::number() {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 10 && i < rest_.size(); ++i) {
    const auto byte = static_cast<unsigned char>(rest_[i]);
    value |= std::uint64_t(byte & 0x7f) << (7 * i);
    if ((byte & 0x80) == 0) {
      rest_.remove_prefix(i + 1);
      return value;
    }
  }
  damaged_ = true;
  return std::nullopt;
}

std::optional<std::string_view> WireReader::bytes(std::uint64_t count) {
  if (count > rest_.size()) {
    damaged_ = true;
    return std::nullopt;
  }
  const std::string_view taken = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return taken;
}

std::optional<WireField> WireReader::next() {
  if (at_end() || damaged_) return std::nullopt;
  const auto key = number();
  if (!key) return std::nullopt;
  WireField field{.number = *key >> 3};
  const std::uint64_t type = *key & 7;
  if (type == kVarint) {
    const auto value = number();
    if (!value) return std::nullopt;
    field.value = *value;
    return field;
  }
  field.is_bytes = true;
  std::optional<std::uint64_t> length;
  if (type == kLength) length = number();
  if (type == kEightBytes) length = 8;
  if (type == kFourBytes) length = 4;
  const auto content = length ? bytes(*length) : std::nullopt;
  if (!content || field.number == 0) {
    damaged_ = true;
    return std::nullopt;
  }
  field.bytes = *content;
  return field;
}

}  // namespace tools

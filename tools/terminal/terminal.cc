#include "tools/terminal/terminal.h"

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "sweep/input/utf8.h"

namespace tools {
namespace {

// Characters that are not shown but do something, first and last of each run.
struct Run {
  std::uint32_t first, last;
};
constexpr Run kObeyed[] = {
    {0x00, 0x08},       {0x0b, 0x1f},      // all control characters but tab and line feed
    {0x7f, 0x9f},                          // delete, and the second set of control characters
    {0x061c, 0x061c},   {0x200e, 0x200f},  // marks of direction
    {0x2028, 0x202e},   {0x2066, 0x206f},  // ends of lines, embedded directions
    {0xfeff, 0xfeff},   {0xfff9, 0xfffb},  // the byte order mark, annotations
    {0xe0000, 0xe007f},                    // tags
};

bool obeyed(std::uint32_t code) {
  for (const Run& run : kObeyed) {
    if (code >= run.first && code <= run.last) return true;
  }
  return false;
}

// The code point of a character, whose bytes are given.
std::uint32_t code_of(std::string_view character) {
  constexpr unsigned char first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  std::uint32_t code = static_cast<unsigned char>(character[0]) & first_bits[character.size()];
  for (const char byte : character.substr(1)) {
    code = code << 6 | (static_cast<unsigned char>(byte) & 0x3f);
  }
  return code;
}

}  // namespace

void write_out(std::FILE* stream, std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stream) == text.size()) return;
  throw std::system_error(errno, std::generic_category(), "cannot write the output");
}

void flush_out(std::FILE* stream) {
  if (std::fflush(stream) == 0 || errno == EPIPE) return;
  throw std::system_error(errno, std::generic_category(), "cannot write the output");
}

void silence(std::FILE* stream) {
  if (std::freopen("/dev/null", "w", stream) != nullptr) return;
  throw std::system_error(errno, std::generic_category(), "cannot open /dev/null");
}

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = sweep::character_length(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    text.remove_prefix(character.size());
    const std::uint32_t code =
        length == 0 ? static_cast<unsigned char>(character[0]) : code_of(character);
    if (length > 0 && !obeyed(code)) {
      shown += character;
    } else if (length <= 1) {
      shown += fmt::format("\\x{:02x}", code);
    } else {
      shown += code > 0xffff ? fmt::format("\\U{:08x}", code) : fmt::format("\\u{:04x}", code);
    }
  }
  return shown;
}

}  // namespace tools

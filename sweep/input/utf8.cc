#include "sweep/input/utf8.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace sweep {
namespace {

// Characters by their first byte: how long they are, and the range of the second byte, which is what
// rules out overlong forms, surrogates and what is beyond Unicode. Further bytes are 0x80 to 0xbf.
struct FirstByte {
  unsigned char first, last;
  std::size_t length;
  unsigned char second_low, second_high;
};
constexpr FirstByte kFirstBytes[] = {
    {0xc2, 0xdf, 2, 0x80, 0xbf}, {0xe0, 0xe0, 3, 0xa0, 0xbf}, {0xe1, 0xec, 3, 0x80, 0xbf},
    {0xed, 0xed, 3, 0x80, 0x9f}, {0xee, 0xef, 3, 0x80, 0xbf}, {0xf0, 0xf0, 4, 0x90, 0xbf},
    {0xf1, 0xf3, 4, 0x80, 0xbf}, {0xf4, 0xf4, 4, 0x80, 0x8f},
};

unsigned char byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

// Eight bytes at once: true if each is an ASCII character other than zero.
bool plain_eight(const char* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  constexpr std::uint64_t ones = 0x0101010101010101, tops = 0x8080808080808080;
  return ((word | (word - ones)) & tops) == 0;
}

// Where the text stops being text; its size if it does not.
std::size_t text_end(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (text.size() - at >= 8 && plain_eight(text.data() + at)) {
      at += 8;
      continue;
    }
    const std::size_t length = text[at] == '\0' ? 0 : character_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return at;
}

}  // namespace

std::size_t character_length(std::string_view text) {
  if (text.empty()) return 0;
  const unsigned char first = byte_at(text, 0);
  if (first < 0x80) return 1;
  for (const FirstByte& kind : kFirstBytes) {
    if (first < kind.first || first > kind.last) continue;
    if (text.size() < kind.length) return 0;
    const unsigned char second = byte_at(text, 1);
    if (second < kind.second_low || second > kind.second_high) return 0;
    for (std::size_t i = 2; i < kind.length; ++i) {
      if ((byte_at(text, i) & 0xc0) != 0x80) return 0;
    }
    return kind.length;
  }
  return 0;
}

bool is_utf8(std::string_view text) { return text_end(text) == text.size(); }

std::optional<engine::Mistake> not_text(std::string_view text, const std::string& file) {
  const std::size_t end = text_end(text);
  if (end == text.size()) return std::nullopt;
  engine::Location where{file, 1, 1};
  for (std::size_t at = 0; at < end; at += character_length(text.substr(at))) {
    where.line += text[at] == '\n' ? 1 : 0;
    where.column = text[at] == '\n' ? 1 : where.column + 1;
  }
  std::array<char, 8> byte{};
  std::snprintf(byte.data(), byte.size(), "0x%02x", unsigned(byte_at(text, end)));
  return engine::Mistake{where, "byte " + std::string(byte.data()) + " is not UTF-8 text",
                         text[end] == '\0' ? "is this a text file? UTF-16 must be saved as UTF-8"
                                           : "save the file as UTF-8"};
}

}  // namespace sweep

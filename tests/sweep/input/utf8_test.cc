#include "sweep/input/utf8.h"

#include <gtest/gtest.h>

namespace sweep {
namespace {

std::string refusal(std::string_view text) {
  const auto mistake = not_text(text, "f");
  return mistake ? engine::to_text({*mistake}) : "";
}

// UTF-8 of a code point, without asking whether it is a character.
std::string encoded(std::uint32_t code) {
  const auto byte = [](std::uint32_t value) { return char(static_cast<unsigned char>(value)); };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xc0 | code >> 6), byte(0x80 | (code & 0x3f))};
  if (code < 0x10000) {
    return {byte(0xe0 | code >> 12), byte(0x80 | (code >> 6 & 0x3f)), byte(0x80 | (code & 0x3f))};
  }
  return {byte(0xf0 | code >> 18), byte(0x80 | (code >> 12 & 0x3f)),
          byte(0x80 | (code >> 6 & 0x3f)), byte(0x80 | (code & 0x3f))};
}

TEST(Utf8, EveryCharacterIsTextAndNothingElseIs) {
  for (std::uint32_t code = 1; code < 0x120000; ++code) {
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    const bool character = code < 0x110000 && !surrogate;
    if (is_utf8(encoded(code)) != character) FAIL() << std::hex << code;
  }
}

TEST(Utf8, NoCharacterMayBeCutOff) {
  for (const std::uint32_t code : {0xe9u, 0x20acu, 0x1f600u}) {
    const std::string whole = encoded(code);
    for (std::size_t length = 1; length < whole.size(); ++length) {
      EXPECT_FALSE(is_utf8(whole.substr(0, length)));
      EXPECT_FALSE(is_utf8(whole.substr(0, length) + "abcdefghijk"));
    }
  }
}

TEST(Utf8, OverlongFormsAreRefused) {
  for (const std::string_view text : {"\xc0\xaf", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf"}) {
    EXPECT_FALSE(is_utf8(text));
  }
}

TEST(Utf8, OneWrongByteIsFoundWhereverItStands) {
  for (std::size_t length = 1; length < 40; ++length) {
    for (std::size_t place = 0; place < length; ++place) {
      for (const char wrong : {'\0', '\x80', '\xff'}) {
        std::string text(length, 'x');
        text[place] = wrong;
        const auto mistake = not_text(text, "f");
        ASSERT_TRUE(mistake);
        EXPECT_EQ(mistake->where.column, int(place) + 1);
      }
    }
  }
}

TEST(Utf8, ThePlaceCountsCharactersNotBytes) {
  EXPECT_EQ(refusal("name: caf\xc3\xa9\nnote: \xc3\xa9\xff"),
            "f:2:8: error: byte 0xff is not UTF-8 text\n  hint: save the file as UTF-8\n");
  EXPECT_EQ(refusal(std::string_view("b\0a", 3)),
            "f:1:2: error: byte 0x00 is not UTF-8 text\n"
            "  hint: is this a text file? UTF-16 must be saved as UTF-8\n");
}

}  // namespace
}  // namespace sweep

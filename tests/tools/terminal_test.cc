#include "tools/terminal/terminal.h"

#include <gtest/gtest.h>

namespace tools {
namespace {

TEST(Terminal, PlainTextStaysAsItIs) {
  for (const std::string_view text : {"", "h100-sxm: 3.35 TB/s\n\tnext",
                                      "caf\u00e9 \u65e5\u672c \U0001f600", "\\x1b is not one"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Terminal, ControlCharactersAreWrittenOut) {
  EXPECT_EQ(printable("\x1b[31mred\x1b[0m"), "\\x1b[31mred\\x1b[0m");
  EXPECT_EQ(printable("title\a\r\b\x7f"), "title\\x07\\x0d\\x08\\x7f");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  // The second set, which some terminals obey as well, and marks that turn text around.
  EXPECT_EQ(printable("\u009b31m"), "\\u009b31m");
  EXPECT_EQ(printable("a\u202eb\u2066c"), "a\\u202eb\\u2066c");
}

TEST(Terminal, BytesThatAreNotTextAreWrittenOut) {
  EXPECT_EQ(printable("caf\xe9"), "caf\\xe9");
  EXPECT_EQ(printable("\xc3"), "\\xc3");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");
}

// Whatever comes in, nothing goes out that a terminal obeys.
TEST(Terminal, NoByteOutOfPlaceEverComesThrough) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      for (const char shown : printable(std::string{char(first), char(second)})) {
        const auto byte = static_cast<unsigned char>(shown);
        EXPECT_TRUE((byte >= 0x20 && byte != 0x7f) || byte == '\n' || byte == '\t')
            << first << " " << second;
      }
    }
  }
}

}  // namespace
}  // namespace tools

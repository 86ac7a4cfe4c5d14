#include "sweep/input/read_text.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "tests/support/toy_rows.h"

namespace sweep {
namespace {

void write(const std::string& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

void write_gzip(const std::string& file, const std::string& text, int times = 1) {
  gzFile out = gzopen(file.c_str(), "wb9");
  for (int i = 0; i < times; ++i) gzwrite(out, text.data(), unsigned(text.size()));
  gzclose(out);
}

std::string refusal(const engine::Result<std::string>& text) {
  return text ? "read" : text.mistakes().front().what;
}

class ReadText : public ::testing::Test {
 protected:
  std::string file(const std::string& name) const { return (folder_.path() / name).string(); }
  tests::TemporaryFolder folder_;
};

TEST_F(ReadText, PlainAndGzippedTablesReadAlike) {
  write(file("a.csv"), "x,y\n1,2\n");
  write_gzip(file("a.csv.gz"), "x,y\n1,2\n");
  EXPECT_EQ(read_table_text(file("a.csv")).value(), "x,y\n1,2\n");
  EXPECT_EQ(read_table_text(file("a.csv.gz")).value(), "x,y\n1,2\n");
}

TEST_F(ReadText, AFileLongerThanItsLimitIsNotRead) {
  InputLimits limits;
  limits.spec_bytes = limits.table_bytes = 10;
  write(file("ten"), "0123456789");
  write(file("eleven"), "0123456789a");
  EXPECT_EQ(refusal(read_spec_text(file("ten"), limits)), "read");
  EXPECT_EQ(refusal(read_table_text(file("ten"), limits)), "read");
  EXPECT_EQ(engine::to_text(read_spec_text(file("eleven"), limits).mistakes()),
            file("eleven") +
                ": error: the file holds more than 10\n"
                "  hint: if that is meant, raise the limit: LLMSWEEP_LIMITS=spec_bytes=...\n");
  EXPECT_EQ(refusal(read_table_text(file("eleven"), limits)), "the file holds more than 10");
}

// Gzip packs a thousand to one: a few megabytes could otherwise fill any memory.
TEST_F(ReadText, AGzipBombIsStoppedOnTheWay) {
  write_gzip(file("bomb.gz"), std::string(1 << 20, 'x'), 65);
  EXPECT_LT(std::filesystem::file_size(file("bomb.gz")), 1u << 20);
  EXPECT_EQ(refusal(read_table_text(file("bomb.gz"))),
            "the file unpacks to more than 64 MiB and more than 50 times its size");
}

TEST_F(ReadText, ACutGzipIsNoticed) {
  std::string text;
  for (int i = 0; i < 10000; ++i) text += std::to_string(i * 7919 % 10007) + "\n";
  write_gzip(file("whole.gz"), text);
  for (const std::uintmax_t left : {1000u, 5000u}) {
    std::filesystem::copy_file(file("whole.gz"), file("cut.gz"),
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(file("cut.gz"), left);
    EXPECT_TRUE(
        refusal(read_table_text(file("cut.gz"))).starts_with("the file is damaged or cut off"));
  }
}

TEST_F(ReadText, WhatIsNoFileOrNoTextIsRefused) {
  EXPECT_EQ(refusal(read_spec_text(file("nothing"))), "there is no such file");
  EXPECT_EQ(refusal(read_table_text(file("nothing"))), "there is no such file");
  EXPECT_EQ(refusal(read_spec_text(file(""))), "this is not a file");
  EXPECT_EQ(refusal(read_spec_text("/dev/zero")), "this is not a file");
  write(file("latin1"), "name: caf\xe9\n");
  EXPECT_EQ(engine::to_text(read_spec_text(file("latin1")).mistakes()),
            file("latin1") +
                ":1:10: error: byte 0xe9 is not UTF-8 text\n  hint: save the file as UTF-8\n");
  EXPECT_EQ(refusal(read_table_text(file("latin1"))), "byte 0xe9 is not UTF-8 text");
}

TEST_F(ReadText, AnEmptyFileIsAnEmptyText) {
  write(file("empty"), "");
  EXPECT_EQ(read_spec_text(file("empty")).value(), "");
  EXPECT_EQ(read_table_text(file("empty")).value(), "");
}

}  // namespace
}  // namespace sweep

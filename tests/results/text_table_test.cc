#include "results/text_table.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace results {
namespace {

TextTable table_of(std::string_view text) {
  auto table = parse_csv(text, "t.csv");
  EXPECT_TRUE(table) << engine::to_text(table.mistakes());
  return std::move(table).value();
}

TEST(TextTable, QuotesHoldCommasAndQuotes) {
  const TextTable table = table_of("a,b\n\"x,\"\"y\"\"\",2\n");
  EXPECT_EQ(table.columns[0][0], "x,\"y\"");
  EXPECT_EQ(table.columns[1][0], "2");
}

TEST(TextTable, LinesAreCountedOverEmptyOnes) {
  const TextTable table = table_of("a,b\r\n1,2\r\n\r\n33,4\r\n");
  EXPECT_EQ(table.rows(), 2);
  EXPECT_EQ(table.where(1, 1), (engine::Location{"t.csv", 4, 4}));
}

TEST(TextTable, GoesThroughEveryFormatUnchanged) {
  const TextTable table = table_of("name,count,time\na,1,2.5e-06\n\"b,c\",,0.5\n");
  const tests::TemporaryFolder folder;
  for (const char* name : {"t.csv", "t.csv.gz", "t.parquet"}) {
    const auto file = folder.path() / name;
    write_table(file, table);
    const auto back = read_table(file);
    ASSERT_TRUE(back) << engine::to_text(back.mistakes());
    ASSERT_EQ(back->columns.size(), 3);
    ASSERT_EQ(back->rows(), 2);
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t row = 0; row < 2; ++row) {
        EXPECT_EQ(back->columns[i][row], table.columns[i][row]) << name;
      }
    }
  }
}

TEST(TextTable, AbsentAndBrokenFilesAreMistakes) {
  EXPECT_FALSE(read_table("/nowhere/t.csv"));
  const tests::TemporaryFolder folder;
  const auto file = folder.path() / "broken.parquet";
  write_table(file.string() + ".csv", table_of("a\n1\n"));
  std::filesystem::rename(file.string() + ".csv", file);
  EXPECT_FALSE(read_table(file));
}

}  // namespace
}  // namespace results

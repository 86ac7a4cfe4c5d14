// Files that say how likely proposed tokens hold.
#include "sweep/workload/acceptance_file.h"

#include <gtest/gtest.h>

namespace sweep {
namespace {

std::string mistakes_in(const std::string& text) {
  return engine::to_text(parse_acceptance(text, "a.csv").mistakes());
}

TEST(AcceptanceFile, SaysItByPositionAndWorkload) {
  const auto table = parse_acceptance(
      "workload,position,acceptance,samples\n"
      "chat,1,0.8,100\nchat,2,0.7,80\ncode,1,0.9,100\n",
      "a.csv");
  ASSERT_TRUE(table) << engine::to_text(table.mistakes());
  const engine::Acceptance& chat = table->by_workload.at("chat");
  EXPECT_EQ(chat[0], 0.8);
  EXPECT_EQ(chat[1], 0.7);
  EXPECT_EQ(chat[63], 0.7);  // the last one counts for all that follow
  EXPECT_EQ(table->by_workload.at("code")[5], 0.9);
  EXPECT_FALSE(table->checksum.empty());
}

TEST(AcceptanceFile, OfOneWorkloadNeedsNoName) {
  const auto table = parse_acceptance("position, acceptance\n2, 0.5\n1, 0.6\n", "a.csv");
  ASSERT_TRUE(table) << engine::to_text(table.mistakes());
  EXPECT_EQ(table->by_workload.at("")[0], 0.6);
  EXPECT_EQ(table->by_workload.at("")[1], 0.5);
}

TEST(AcceptanceFile, SaysWhereItIsWrong) {
  EXPECT_EQ(mistakes_in("place,acceptance\n1,0.5\n"),
            "a.csv:1:1: error: there is no column 'position'\n"
            "  hint: the first line names the columns: position, acceptance and, for several, "
            "workload\n");
  EXPECT_EQ(mistakes_in("position,acceptance\n1,0.5\n0,0.5\n2,1.5\n3\n"),
            "a.csv:3:1: error: '0' is no position\n"
            "  hint: positions are whole numbers from 1 to 64\n"
            "a.csv:4:3: error: '1.5' is no probability\n"
            "  hint: write a number between 0 and 1\n"
            "a.csv:5:1: error: the row has too few cells\n"
            "  hint: it needs one for each column\n");
  EXPECT_EQ(mistakes_in("position,acceptance\n1,0.5\n1,0.6\n"),
            "a.csv:3:1: error: position 1 is stated twice\n"
            "  hint: keep one of the rows\n");
  EXPECT_EQ(mistakes_in("workload,position,acceptance\nx,2,0.5\n"),
            "a.csv:2:1: error: position 1 is missing for workload 'x'\n"
            "  hint: every position up to the last needs a row\n");
  EXPECT_EQ(mistakes_in("position,acceptance\n"),
            "a.csv:1:0: error: the file has no rows\n"
            "  hint: it needs columns position and acceptance\n");
}

}  // namespace
}  // namespace sweep

#include "tools/calibrate/tables/kernel_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/calibrate/tables/measured_calls.h"

namespace tools {
namespace {

engine::Result<KernelTable> read(std::string_view text, Times times = Times::needed) {
  auto table = results::parse_csv(text, "t.csv");
  if (!table) return table.mistakes();
  return kernel_table_of(std::move(table).value(), times);
}

std::string mistakes_of(std::string_view text, Times times = Times::needed) {
  const auto table = read(text, times);
  return table ? "" : engine::to_text(table.mistakes());
}

TEST(KernelTable, ReadsTheColumnsAFamilyNeedsAndNoMore) {
  const auto table = read("family,m,n,k,seconds\ngemm,8,4096,1024,2.5e-06\n");
  ASSERT_TRUE(table) << engine::to_text(table.mistakes());
  ASSERT_EQ(table->records.size(), 1);
  const KernelRecord& record = table->records[0];
  EXPECT_EQ(record.call.family, engine::Family::gemm);
  EXPECT_EQ(record.call.dtype, Format::bf16);
  EXPECT_EQ(record.call[Size::n], 4096);
  EXPECT_EQ(record.seconds, 2.5e-6);
}

TEST(KernelTable, ContextLengthOfAPrefillIsItsQueriesUnlessSaid) {
  const auto table = read(
      "family,batch,query_len,context_len,q_heads,kv_heads,head_dim,seconds\n"
      "attn_prefill,1,512,,32,8,128,1e-4\n"
      "attn_prefill,1,512,1536,32,8,128,2e-4\n");
  ASSERT_TRUE(table) << engine::to_text(table.mistakes());
  EXPECT_EQ(table->records[0].call[Size::context_len], 512);
  EXPECT_EQ(table->records[1].call[Size::context_len], 1536);
  EXPECT_EQ(table->records[1].call[Size::window], 0);
}

TEST(KernelTable, UnknownFamiliesAndFormatsAreCountedNotFatal) {
  const auto table = read(
      "family,dtype,m,n,k,seconds\n"
      "conv,bf16,1,1,1,1e-6\n"
      "conv,bf16,1,1,1,1e-6\n"
      "gemm,posit8,1,1,1,1e-6\n"
      "gemm,bf16,1,1,1,1e-6\n");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->records.size(), 1);
  ASSERT_EQ(table->skipped.size(), 2);
  EXPECT_EQ(table->skipped[0].what, "dtype 'posit8'");
  EXPECT_EQ(table->skipped[1].what, "family 'conv'");
  EXPECT_EQ(table->skipped[1].rows, 2);
  EXPECT_EQ(table->skipped[1].first, (engine::Location{"t.csv", 2, 1}));
}

TEST(KernelTable, AMissingColumnIsNamedWithTheFamilyThatNeedsIt) {
  EXPECT_EQ(mistakes_of("family,m,n,seconds\ngemm,1,2,1e-6\n"),
            "t.csv:2:1: error: family gemm needs 'k'\n"
            "  hint: the table has no such column\n");
  EXPECT_EQ(mistakes_of("famly,m,n,k,seconds\ngemm,1,2,3,1e-6\n"),
            "t.csv:1:1: error: the table has no column 'family'\n"
            "  hint: did you mean 'famly'?\n");
}

TEST(KernelTable, AnEmptyCellIsLocated) {
  EXPECT_EQ(mistakes_of("family,m,n,k,seconds\ngemm,1,,3,1e-6\n"),
            "t.csv:2:8: error: family gemm needs 'n'\n  hint: the cell is empty\n");
}

TEST(KernelTable, TimesThatAreNoTimesAreLocatedEach) {
  const std::string text = mistakes_of(
      "family,m,n,k,seconds\n"
      "gemm,1,2,3,0\n"
      "gemm,1,2,3,-1e-6\n"
      "gemm,1,2,3,nan\n"
      "gemm,1,2,3,\n"
      "gemm,1,2,3,inf\n");
  for (int line = 2; line <= 6; ++line) {
    EXPECT_THAT(text, testing::HasSubstr("t.csv:" + std::to_string(line) + ":12: error: seconds"));
  }
}

TEST(KernelTable, TimesDoNotMatterToAPrediction) {
  EXPECT_TRUE(read("family,m,n,k\ngemm,1,2,3\n", Times::ignored));
  EXPECT_TRUE(read("family,m,n,k,seconds\ngemm,1,2,3,0\n", Times::ignored));
}

TEST(KernelTable, SizesBelowOneAndTextAreRefused) {
  EXPECT_EQ(mistakes_of("family,m,n,k,seconds\ngemm,0,2,x,1e-6\n"),
            "t.csv:2:6: error: m: '0' is no size\n  hint: write a number of at least 1\n"
            "t.csv:2:10: error: k: 'x' is no size\n  hint: write a number of at least 1\n");
}

TEST(KernelTable, TornRowsAndEmptyTablesAreRefused) {
  EXPECT_EQ(mistakes_of("family,m,n,k,seconds\ngemm,1,2\n"),
            "t.csv:2:9: error: the row has 3 of 5 cells\n"
            "  hint: the file may be cut off here\n");
  EXPECT_EQ(mistakes_of(""),
            "t.csv:1:1: error: the table is empty\n  hint: the first line names the columns\n");
  EXPECT_EQ(mistakes_of("family,seconds\n"), "t.csv:1:1: error: the table has no rows\n");
}

TEST(MeasuredCalls, EqualRowsBecomeTheirMedianAndConflictsAreSaid) {
  const auto table = read(
      "family,impl,m,n,k,seconds\n"
      "gemm,a,1,2,3,1e-6\n"
      "gemm,a,1,2,3,9e-6\n"
      "gemm,a,1,2,3,2e-6\n"
      "gemm,b,1,2,3,4e-6\n"
      "gemm,b:sustained,1,2,3,8e-6\n");
  ASSERT_TRUE(table);
  const auto calls = gather_calls(*table, {});
  ASSERT_TRUE(calls);
  ASSERT_EQ(calls->calls.size(), 1);
  EXPECT_DOUBLE_EQ(calls->calls[0].seconds, 3e-6);  // median of a's 2 us and b's 4 us
  EXPECT_EQ(calls->conflicts, 1);
  EXPECT_DOUBLE_EQ(calls->worst_conflict, 9);
  EXPECT_EQ(calls->first_conflict, (engine::Location{"t.csv", 2, 1}));
  const auto only_b = gather_calls(*table, {.impl = "^b$"});
  EXPECT_DOUBLE_EQ(only_b->calls[0].seconds, 4e-6);
  EXPECT_FALSE(gather_calls(*table, {.impl = "("}));
}

}  // namespace
}  // namespace tools

#include "sweep/workload/trace_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdio>
#include <filesystem>
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace sweep {
namespace {

std::string mistakes_of(const TraceResult& result) { return engine::to_text(result.mistakes()); }

TEST(TraceFile, ReadsOurColumnsInAnyOrder) {
  const TraceResult result = parse_trace(
      "output_tokens,arrival_s,prompt_tokens,session,priority,tenant,hash_ids,other\n"
      "5,0.5,100,7,1,acme,11 12,x\n"
      "6,1.25,200,8,0,zoo,11;13,y\n",
      "t.csv");
  ASSERT_TRUE(result.ok()) << mistakes_of(result);
  const engine::Trace& trace = **result;
  EXPECT_EQ(trace.arrival, (std::vector<double>{0.5, 1.25}));
  EXPECT_EQ(trace.prompt, (std::vector<std::int32_t>{100, 200}));
  EXPECT_EQ(trace.output, (std::vector<std::int32_t>{5, 6}));
  EXPECT_EQ(trace.session, (std::vector<std::int64_t>{7, 8}));
  EXPECT_EQ(trace.priority, (std::vector<std::int32_t>{1, 0}));
  EXPECT_EQ(trace.tenant, (std::vector<std::int32_t>{0, 1}));  // numbered as they appear
  EXPECT_EQ(trace.first_block, (std::vector<std::uint32_t>{0, 2, 4}));
  EXPECT_EQ(trace.blocks[0], trace.blocks[2]);  // the same first block
  EXPECT_NE(trace.blocks[1], trace.blocks[3]);
  EXPECT_EQ(trace.block_tokens, 16);
  EXPECT_EQ(trace.checksum.size(), 16u);
}

TEST(TraceFile, ABlockStandsForEverythingBeforeIt) {
  const TraceResult result = parse_trace(
      "{\"timestamp\": 0, \"input_length\": 1000, \"output_length\": 2, \"hash_ids\": [1, 5]}\n"
      "{\"timestamp\": 1500, \"input_length\": 1000, \"output_length\": 2, \"hash_ids\": [2, 5]}\n",
      "t.jsonl");
  ASSERT_TRUE(result.ok()) << mistakes_of(result);
  const engine::Trace& trace = **result;
  EXPECT_EQ(trace.arrival, (std::vector<double>{0, 1.5}));
  EXPECT_EQ(trace.block_tokens, 512);
  EXPECT_NE(trace.blocks[1], trace.blocks[3]);
}

TEST(TraceFile, ReadsVidursArrivals) {
  const TraceResult result =
      parse_trace("arrived_at,num_prefill_tokens,num_decode_tokens\n0.5,100,5\n2,200,6\n", "t.csv");
  ASSERT_TRUE(result.ok()) << mistakes_of(result);
  EXPECT_EQ((**result).arrival, (std::vector<double>{0.5, 2}));
  EXPECT_EQ((**result).output, (std::vector<std::int32_t>{5, 6}));
}

TEST(TraceFile, ReadsDatesAndTimes) {
  const TraceResult result = parse_trace(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n"
      "2023-11-30 23:59:59.5000000,374,44\n"
      "2023-12-01 00:00:01.2500000,396,109\n",
      "azure.csv");
  ASSERT_TRUE(result.ok()) << mistakes_of(result);
  EXPECT_EQ((*result)->arrival[1], 1.75);
}

TEST(TraceFile, TimesMayHaveAZone) {
  const TraceResult result = parse_trace(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n"
      "2024-05-10 00:00:00.500000+00:00,2162,5\n"
      "2024-05-10T00:00:02Z,2399,6\n"
      "2024-05-10 05:30:03.25+05:30,76,15\n"
      "2024-05-09 23:00:04-01,2376,1\n",
      "azure.csv");
  ASSERT_TRUE(result.ok()) << mistakes_of(result);
  EXPECT_EQ((*result)->arrival, (std::vector<double>{0, 1.5, 2.75, 3.5}));
}

TEST(TraceFile, ReadsSecondsUnderTheNamesOfBurstGpt) {
  const TraceResult result = parse_trace(
      "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
      "5,ChatGPT,472,18,490,Conversation log\n"
      "45,GPT-4,1087,230,1317,API log\n",
      "burst.csv");
  ASSERT_TRUE(result.ok()) << mistakes_of(result);
  EXPECT_EQ((*result)->prompt, (std::vector<std::int32_t>{472, 1087}));
  EXPECT_EQ((*result)->output, (std::vector<std::int32_t>{18, 230}));
  EXPECT_EQ((*result)->arrival[1] - (*result)->arrival[0], 40);
}

TEST(TraceFile, LinesMayEndInEitherWay) {
  const TraceResult unix_lines =
      parse_trace("arrival_s,prompt_tokens,output_tokens\n1,10,5\n2,11,6\n", "t.csv");
  const TraceResult mixed = parse_trace(
      "\xef\xbb\xbf"
      "arrival_s,prompt_tokens,output_tokens\r\n1,10,5\n\r\n2, 11 ,6\r\n",
      "t.csv");
  ASSERT_TRUE(mixed.ok()) << mistakes_of(mixed);
  EXPECT_EQ((*mixed)->arrival, (*unix_lines)->arrival);
  EXPECT_EQ((*mixed)->prompt, (*unix_lines)->prompt);
  EXPECT_EQ((*mixed)->output, (*unix_lines)->output);
}

TEST(TraceFile, AGzipThatIsCutOffIsAMistake) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.path() / "cut.csv.gz";
  gzFile out = gzopen(path.c_str(), "wb");
  gzputs(out, "arrival_s,prompt_tokens,output_tokens\n");
  for (int i = 0; i < 5000; ++i) gzprintf(out, "%d,%d,%d\n", i, 10 + i % 97, 5 + i % 13);
  gzclose(out);
  ASSERT_TRUE(read_trace(path).ok());
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  // Nothing of it is used, though half of its rows can be read.
  EXPECT_THAT(
      mistakes_of(read_trace(path)),
      testing::MatchesRegex(path + ": error: the file is damaged or cut off after [0-9]+ bytes "
                                   "of text\n  hint: fetch the file again\n"));
}

TEST(TraceFile, ReadsThePublicTraces) {
  const std::string data = paths::shared("data/");
  if (!std::filesystem::exists(data + "traces_mooncake")) GTEST_SKIP() << "no shared data here";
  const TraceResult mooncake = read_trace(data + "traces_mooncake/conversation_trace.jsonl.gz");
  ASSERT_TRUE(mooncake.ok()) << mistakes_of(mooncake);
  EXPECT_EQ((*mooncake)->size(), 12031u);
  const TraceResult azure =
      read_trace(data + "traces_azure2023/AzureLLMInferenceTrace_conv.csv.gz");
  ASSERT_TRUE(azure.ok()) << mistakes_of(azure);
  EXPECT_EQ((*azure)->size(), 19366u);
  EXPECT_NEAR((*azure)->arrival.back(), 3500, 100);
  const TraceResult vidur = read_trace(data + "traces_vidur/arxiv_summarization_lengths.csv.gz");
  ASSERT_TRUE(vidur.ok()) << mistakes_of(vidur);
  EXPECT_TRUE((*vidur)->arrival.empty());
  const TraceResult sharegpt =
      read_trace(data + "llmservingsim_vllm_runs/workloads/sharegpt-llama-3.1-8b-300-sps10.jsonl");
  ASSERT_TRUE(sharegpt.ok()) << mistakes_of(sharegpt);
  EXPECT_EQ((*sharegpt)->size(), 300u);
}

}  // namespace
}  // namespace sweep

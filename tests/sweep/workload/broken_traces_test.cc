// Traces as they go wrong, and all that is said about each, in full.
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "sweep/workload/trace_file.h"

namespace sweep {
namespace {

struct BrokenTrace {
  const char* name;  // of the case
  const char* file;  // the end of its name says the format
  std::string text;
  std::string message;

  friend void PrintTo(const BrokenTrace& trace, std::ostream* out) { *out << trace.file; }
};

const std::string kHeader = "arrival_s,prompt_tokens,output_tokens\n";

const BrokenTrace kBroken[] = {
    {"Unsorted", "t.csv", kHeader + "1,10,5\n0.5,10,5\n2,10,5\n",
     "t.csv:3:1: error: the arrival is before that of the row above\n"
     "  hint: sort the rows by arrival\n"},
    {"NegativeArrival", "t.csv", kHeader + "-1,10,5\n",
     "t.csv:2:1: error: the arrival is not a time from 0 to 1e9 s\n"
     "  hint: times are seconds from the first row on, and rows in their order\n"},
    {"NegativeTokens", "t.csv", kHeader + "1,-10,5\n",
     "t.csv:2:3: error: prompt_tokens is not a whole number from 1 to 100000000\n"},
    {"NoTokens", "t.csv", kHeader + "1,10,0\n",
     "t.csv:2:6: error: output_tokens is not a whole number from 1 to 100000000\n"},
    {"HalfAToken", "t.csv", kHeader + "1,10.5,5\n",
     "t.csv:2:3: error: prompt_tokens is not a whole number from 1 to 100000000\n"},
    {"NotANumber", "t.csv", kHeader + "1,nan,5\nnan,10,5\ninf,10,5\n",
     "t.csv:2:3: error: prompt_tokens is not a whole number from 1 to 100000000\n"
     "t.csv:3:1: error: the arrival is not a time from 0 to 1e9 s\n"
     "  hint: times are seconds from the first row on, and rows in their order\n"
     "t.csv:4:1: error: the arrival is not a time from 0 to 1e9 s\n"
     "  hint: times are seconds from the first row on, and rows in their order\n"},
    {"Words", "t.csv", kHeader + "1,10,many\nsoon,10,5\n,10,5\n",
     "t.csv:2:6: error: 'many' is not a value of output_tokens\n"
     "t.csv:3:1: error: 'soon' is not a value of arrival_s\n"
     "t.csv:4:1: error: '' is not a value of arrival_s\n"},
    {"Huge", "t.csv", kHeader + "1,10,1e12\n1,99999999999999999999,5\n1e300,10,5\n1e999,10,5\n",
     "t.csv:2:6: error: output_tokens is not a whole number from 1 to 100000000\n"
     "t.csv:3:3: error: prompt_tokens is not a whole number from 1 to 100000000\n"
     "t.csv:4:1: error: the arrival is not a time from 0 to 1e9 s\n"
     "  hint: times are seconds from the first row on, and rows in their order\n"
     "t.csv:5:1: error: '1e999' is not a value of arrival_s\n"},
    {"HugeSession", "t.csv", "prompt_tokens,output_tokens,session,priority\n10,5,1e300,-1\n",
     "t.csv:2:6: error: session is not a whole number from 0 to 1000000000000000\n"
     "t.csv:2:12: error: priority is not a whole number from 0 to 1000000\n"},
    {"MissingColumn", "t.csv", "arrival_s,prompt_tokens\n1,2\n",
     "t.csv:1:1: error: there is no column 'output_tokens'\n"
     "  hint: a trace has the columns arrival_s, prompt_tokens and output_tokens\n"},
    {"NoHeader", "t.csv", "1,2,3\n2,3,4\n",
     "t.csv:1:1: error: there is no column 'prompt_tokens'\n"
     "  hint: a trace has the columns arrival_s, prompt_tokens and output_tokens\n"
     "t.csv:1:1: error: there is no column 'output_tokens'\n"
     "  hint: a trace has the columns arrival_s, prompt_tokens and output_tokens\n"},
    {"ColumnTwice", "t.csv", "prompt_tokens,output_tokens,input_length\n1,2,3\n",
     "t.csv:1:29: error: columns 'prompt_tokens' and 'input_length' say the same\n"
     "  hint: rename or remove one of them\n"},
    {"TornLastLine", "t.csv", kHeader + "1,10,5\n2,10",
     "t.csv:3:5: error: the row has 2 cells, the header 3\n"},
    {"TooManyCells", "t.csv", kHeader + "1,10,5,9\n",
     "t.csv:2:9: error: the row has 4 cells, the header 3\n"},
    {"CarriageReturnsAlone", "t.csv", "prompt_tokens,output_tokens\r1,2\r3,4\r",
     "t.csv:1:28: error: lines end in a carriage return alone\n"
     "  hint: end them in a line feed, with or without a carriage return before it\n"},
    {"Empty", "t.csv", "", "t.csv:1:1: error: the trace has no rows\n"},
    {"OnlyAHeader", "t.csv", kHeader, "t.csv:1:1: error: the trace has no rows\n"},
    {"DuplicateIds", "t.csv", "request_id,prompt_tokens,output_tokens\na,1,2\nb,1,2\na,1,2\n",
     "t.csv:4:1: error: request 'a' is in line 2 already\n"},
    {"NoSuchDay", "t.csv",
     "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-13-01 00:00:00.0,1,2\n2023-12-01 "
     "24:00:00,1,2\n",
     "t.csv:2:1: error: '2023-13-01 00:00:00.0' is not a value of TIMESTAMP\n"
     "t.csv:3:1: error: '2023-12-01 24:00:00' is not a value of TIMESTAMP\n"},
    {"NoSuchZone", "t.csv",
     "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-12-01 00:00:00+99:00,1,2\n2023-12-01 "
     "00:00:00 CET,1,2\n",
     "t.csv:2:1: error: '2023-12-01 00:00:00+99:00' is not a value of TIMESTAMP\n"
     "t.csv:3:1: error: '2023-12-01 00:00:00 CET' is not a value of TIMESTAMP\n"},
    {"BadHashes", "t.csv", "prompt_tokens,output_tokens,hash_ids\n10,5,1 -2\n",
     "t.csv:2:6: error: '1 -2' is not a value of hash_ids\n"},
    {"MoreHashesThanBlocks", "t.csv",
     "prompt_tokens,output_tokens,hash_ids\n16,5,1\n17,5,1 2\n10,5,1 2\n40,5,1 2 3 4\n",
     "t.csv:4:6: error: the row has 2 hash_ids, and a prompt of 10 tokens 1 block of 16\n"
     "  hint: give one for each block of 16 tokens\n"
     "t.csv:5:6: error: the row has 4 hash_ids, and a prompt of 40 tokens 3 blocks of 16\n"
     "  hint: give one for each block of 16 tokens\n"},
    {"UnknownFormat", "t.txt", kHeader + "1,10,5\n",
     "t.txt: error: the name does not say what the trace is\n"
     "  hint: name it .csv, .csv.gz, .jsonl or .jsonl.gz\n"},
    {"JsonWrongTypes", "t.jsonl",
     "{\"arrival_s\": 0, \"prompt_tokens\": 10, \"output_tokens\": 5}\n"
     "{\"arrival_s\": 0, \"prompt_tokens\": \"10\", \"output_tokens\": 5}\n"
     "{\"arrival_s\": null, \"prompt_tokens\": 10, \"output_tokens\": 5}\n"
     "{\"arrival_s\": 0, \"prompt_tokens\": [10], \"output_tokens\": 5}\n"
     "{\"arrival_s\": 0, \"prompt_tokens\": 10, \"output_tokens\": true}\n",
     "t.jsonl:2:35: error: '\"10\"' is not a value of prompt_tokens\n"
     "t.jsonl:3:15: error: 'null' is not a value of arrival_s\n"
     "t.jsonl:4:35: error: '[10]' is not a value of prompt_tokens\n"
     "t.jsonl:5:56: error: 'true' is not a value of output_tokens\n"},
    {"JsonMissingField", "t.jsonl",
     "{\"prompt_tokens\": 10, \"output_tokens\": 5}\n{\"prompt_tokens\": 10}\n"
     "{\"prompt_tokens\": 10, \"output_tokens\": 5, \"session\": 1}\n",
     "t.jsonl:2:1: error: the row has no 'output_tokens'\n"
     "t.jsonl:3:1: error: the first row has no 'session'\n"
     "  hint: give every row the same fields\n"},
    {"JsonOutOfRange", "t.jsonl",
     "{\"timestamp\": 5, \"input_length\": 10, \"output_length\": 5}\n"
     "{\"timestamp\": 4, \"input_length\": -10, \"output_length\": 1e9}\n",
     "t.jsonl:2:18: error: input_length is not a whole number from 1 to 100000000\n"
     "t.jsonl:2:39: error: output_length is not a whole number from 1 to 100000000\n"
     "t.jsonl:2:2: error: the arrival is before that of the row above\n"
     "  hint: sort the rows by arrival\n"},
    {"JsonTornLastLine", "t.jsonl",
     "{\"prompt_tokens\": 10, \"output_tokens\": 5}\n{\"prompt_tokens\": 10, \"outp",
     "t.jsonl:2:27: error: the line is not JSON up to its end\n"},
    {"JsonNotANumber", "t.jsonl", "{\"prompt_tokens\": NaN, \"output_tokens\": 5}\n",
     "t.jsonl:1:19: error: the line is not JSON up to its end\n"},
    {"JsonLists", "t.jsonl", "[10, 5]\n7\n",
     "t.jsonl:1:1: error: the line is not a JSON object\n"
     "t.jsonl:2:1: error: the line is not a JSON object\n"},
    {"JsonBadHashes", "t.jsonl",
     "{\"prompt_tokens\": 10, \"output_tokens\": 5, \"hash_ids\": [1, -2]}\n"
     "{\"prompt_tokens\": 10, \"output_tokens\": 5, \"hash_ids\": [1, \"b\"]}\n",
     "t.jsonl:1:55: error: '[1, -2]' is not a value of hash_ids\n"
     "t.jsonl:2:55: error: '[1, \"b\"]' is not a value of hash_ids\n"},
    {"JsonMoreHashesThanBlocks", "t.jsonl",
     "{\"timestamp\": 0, \"input_length\": 513, \"output_length\": 5, \"hash_ids\": [1, 2]}\n"
     "{\"timestamp\": 0, \"input_length\": 512, \"output_length\": 5, \"hash_ids\": [1, 2]}\n",
     "t.jsonl:2:59: error: the row has 2 hash_ids, and a prompt of 512 tokens 1 block of 512\n"
     "  hint: give one for each block of 512 tokens\n"},
    {"JsonDuplicateIds", "t.jsonl",
     "{\"request_id\": 1, \"prompt_tokens\": 10, \"output_tokens\": 5}\n"
     "{\"request_id\": 1, \"prompt_tokens\": 10, \"output_tokens\": 5}\n",
     "t.jsonl:2:2: error: request '1' is in line 1 already\n"},
};

class BrokenTraces : public testing::TestWithParam<BrokenTrace> {};

TEST_P(BrokenTraces, SayExactlyThis) {
  const TraceResult result = parse_trace(GetParam().text, GetParam().file);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(engine::to_text(result.mistakes()), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(Traces, BrokenTraces, testing::ValuesIn(kBroken),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(BadTraces, FiftyMistakesAreToldAndTheRestCounted) {
  std::string text = kHeader;
  for (int i = 0; i < 1000; ++i) text += "1,0,5\n";
  const auto mistakes = parse_trace(text, "t.csv").mistakes();
  ASSERT_EQ(mistakes.size(), 51u);
  EXPECT_EQ(mistakes.back().what, "and 950 more mistakes");
}

TEST(BadTraces, ALineOfManyMegabytesIsNotLookedAt) {
  const std::string text = kHeader + std::string((16 << 20) + 1, ',') + "\n1,5,5\n";
  EXPECT_EQ(engine::to_text(parse_trace(text, "t.csv").mistakes()),
            "t.csv:2:1: error: a line of more than 16 MiB\n"
            "  hint: if that is meant, raise the limit: LLMSWEEP_LIMITS=line_bytes=...\n");
}

TEST(BadTraces, AFileThatIsNotThereSaysSo) {
  EXPECT_EQ(engine::to_text(read_trace("/nowhere/t.csv").mistakes()),
            "/nowhere/t.csv: error: there is no such file\n  hint: check its name\n");
}

}  // namespace
}  // namespace sweep

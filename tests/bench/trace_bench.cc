// Loading a recorded trace of a million requests:
//   cmake --build build/release --target llmsweep_bench && build/release/llmsweep_bench --benchmark_filter=Trace
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <iterator>
#include <string>

#include "engine/base/random.h"
#include "sweep/workload/trace_file.h"

namespace {

constexpr std::uint64_t kRows = 1'000'000;

struct Row {
  double arrival;
  int prompt;
  int output;
};
Row row(std::uint64_t i) {
  return {0.1 * double(i) + 0.1 * engine::uniform(1, engine::Stream::arrivals, i),
          1 + int(4000 * engine::uniform(1, engine::Stream::prompt_lengths, i)),
          1 + int(1000 * engine::uniform(1, engine::Stream::output_lengths, i))};
}

std::string csv() {
  std::string text = "arrival_s,prompt_tokens,output_tokens\n";
  for (std::uint64_t i = 0; i < kRows; ++i) {
    const Row r = row(i);
    fmt::format_to(std::back_inserter(text), "{:.6f},{},{}\n", r.arrival, r.prompt, r.output);
  }
  return text;
}

// `blocks` hashed blocks a prompt.
std::string json_lines(int blocks) {
  std::string text;
  for (std::uint64_t i = 0; i < kRows; ++i) {
    const Row r = row(i);
    fmt::format_to(std::back_inserter(text),
                   R"({{"timestamp": {:.0f}, "input_length": {}, "output_length": {})",
                   r.arrival * 1000, r.prompt, r.output);
    if (blocks > 0) text += R"(, "hash_ids": [)";
    for (int b = 0; b < blocks; ++b) {
      fmt::format_to(std::back_inserter(text), "{}{}", b == 0 ? "" : ", ",
                     i * 7 + std::uint64_t(b));
    }
    text += blocks > 0 ? "]}\n" : "}\n";
  }
  return text;
}

void load(benchmark::State& state, const std::string& text, const char* name) {
  for (auto _ : state) {
    const auto trace = sweep::parse_trace(text, name);
    if (!trace.ok() || (*trace)->size() != kRows) state.SkipWithError("the trace cannot be read");
    benchmark::DoNotOptimize(trace);
  }
  state.counters["rows/s"] =
      benchmark::Counter(double(kRows), benchmark::Counter::kIsIterationInvariantRate);
  state.counters["MB"] = double(text.size()) / 1e6;
}

void TraceCsv(benchmark::State& state) { load(state, csv(), "t.csv"); }
void TraceJsonLines(benchmark::State& state) { load(state, json_lines(0), "t.jsonl"); }
void TraceJsonLinesWithBlocks(benchmark::State& state) { load(state, json_lines(12), "t.jsonl"); }

BENCHMARK(TraceCsv)->Unit(benchmark::kMillisecond);
BENCHMARK(TraceJsonLines)->Unit(benchmark::kMillisecond);
BENCHMARK(TraceJsonLinesWithBlocks)->Unit(benchmark::kMillisecond);

}  // namespace

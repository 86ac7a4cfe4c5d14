#include "results/parquet_sink.h"

#include <gtest/gtest.h>
#include <parquet/file_reader.h>

#include <cmath>
#include <map>
#include <set>

#include "results/failure.h"
#include "results/reader.h"
#include "sweep/space/shard.h"
#include "tests/support/run_tables.h"
#include "tests/support/toy_rows.h"

namespace results {
namespace {

using tests::table_rows;
using tests::ToySweep;
using namespace std::chrono_literals;

constexpr const char* kTableNames[] = {"points", "kernels", "requests", "timeline"};

sweep::IndexSet whole(const ToySweep& toy) {
  return sweep::IndexSet(sweep::IndexRange{0, toy.positions});
}

RunFolder opened(const std::filesystem::path& path, const ToySweep& toy, Shard shard = {}) {
  auto folder = RunFolder::open(path, toy.identity(shard));
  EXPECT_TRUE(folder.ok()) << engine::to_text(folder.mistakes());
  return std::move(folder).value();
}

void write(const std::filesystem::path& path, const ToySweep& toy, SinkOptions options = {},
           int threads = 1) {
  RunFolder folder = opened(path, toy);
  ParquetSink sink(folder, toy.schema(), options);
  tests::run_toy(toy, sink, whole(toy).minus(folder.done()), 64, threads);
}

class Sink : public testing::Test {
 protected:
  const tests::TemporaryFolder temporary;
  const std::filesystem::path run = temporary.path() / "run";
  ParquetReader points() { return ParquetReader(run / "points/part-1of1-000000.parquet"); }
  ParquetReader kernels() { return ParquetReader(run / "kernels/part-1of1-000000.parquet"); }
};

TEST_F(Sink, WritesEveryValueExactly) {
  const ToySweep toy;
  write(run, toy);
  const ParquetReader file = points();
  const auto index = file.integers("index");
  ASSERT_EQ(index.size(), 900u);
  const auto keys = file.keys();
  const auto device = file.texts("device");
  const auto model = file.texts("model");
  const auto clock = file.numbers("device.clock");
  const auto batch = file.integers("step.batch");
  const auto phase = file.texts("step.phase");
  const auto summing = file.booleans("device.scale_up.in_network_reduction");
  const auto status = file.texts("status");
  const auto reason = file.texts("reason");
  const auto reason_class = file.texts("reason_class");
  const auto bound = file.texts("bound");
  const auto tier = file.texts("tier");
  sweep::Point point;
  engine::Outcome outcome;
  for (std::size_t row = 0; row < index.size(); ++row) {
    toy.point(std::uint64_t(index[row]), point);
    toy.outcome(std::uint64_t(index[row]), outcome);
    EXPECT_EQ(keys[row], point.key);
    EXPECT_EQ(device[row], point.scenario.device.name);
    EXPECT_EQ(model[row], "toy-model");
    EXPECT_EQ(clock[row], point.scenario.device.clock.value);
    EXPECT_EQ(batch[row], point.scenario.step.batch);
    EXPECT_EQ(phase[row], engine::name_of(point.scenario.step.phase));
    EXPECT_EQ(summing[row] != 0, point.scenario.device.scale_up.in_network_reduction);
    EXPECT_EQ(status[row], engine::name_of(outcome.status));
    EXPECT_EQ(reason[row].value_or(""), outcome.reason);
    EXPECT_EQ(reason_class[row].value_or("none"), name_of(outcome.reason_class));
    // A point that does not work has no kernels.
    const bool works = outcome.status == engine::Status::ok;
    EXPECT_EQ(bound[row].value_or("none"), works ? engine::name_of(outcome.bound) : "none");
    EXPECT_EQ(tier[row].value_or("none"), works ? engine::name_of(outcome.tier) : "none");
  }
}

TEST_F(Sink, AFigureThatIsNotThereIsNull) {
  const ToySweep toy;
  write(run, toy);
  for (std::size_t m = 0; m < kMetrics; ++m) {
    const auto column = points().numbers(metric_table()[m].column);
    const auto index = points().integers("index");
    engine::Outcome outcome;
    for (std::size_t row = 0; row < index.size(); ++row) {
      toy.outcome(std::uint64_t(index[row]), outcome);
      const double figure = metric_values(outcome.metrics)[m];
      EXPECT_TRUE(column[row] == figure || (std::isnan(column[row]) && std::isnan(figure)))
          << metric_table()[m].column << " of " << index[row];
    }
  }
}

TEST_F(Sink, LabelsAreWhatTheUserWroteOrNull) {
  const ToySweep toy;
  write(run, toy);
  const auto index = points().integers("index");
  const auto device = points().texts("axis.device");
  const auto batch = points().texts("axis.step.batch");
  EXPECT_EQ(index[1], 1);
  EXPECT_EQ(device[1], "toy-a");
  EXPECT_EQ(batch[1], "2");
  EXPECT_EQ(device.back(), "toy-c");
  EXPECT_EQ(batch.back(), std::nullopt);
}

TEST_F(Sink, KernelsJoinTheirPoints) {
  const ToySweep toy{.kernels = 4};
  write(run, toy);
  std::map<engine::Key, int> kernels_of;
  for (const engine::Key& key : kernels().keys()) ++kernels_of[key];
  const auto keys = points().keys();
  const auto status = points().texts("status");
  std::size_t joined = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(kernels_of[keys[i]], status[i] == "ok" ? 4 : 0);
    joined += kernels_of.count(keys[i]);
  }
  EXPECT_EQ(joined, kernels_of.size());

  const auto op = kernels().texts("op");
  EXPECT_EQ(op[0], "embedding");
  EXPECT_EQ(op[1], "input_norm");
  engine::Outcome outcome;
  toy.outcome(std::uint64_t(kernels().integers("index")[1]), outcome);
  EXPECT_EQ(kernels().numbers("seconds")[1], outcome.kernels[1].work.time.value);
  EXPECT_EQ(kernels().numbers("flops")[1], outcome.kernels[1].work.flops.value);
  EXPECT_EQ(kernels().numbers("bytes")[1], outcome.kernels[1].work.bytes.value);
  EXPECT_EQ(kernels().numbers("calls")[1], 80);
}

TEST_F(Sink, RequestsAndMomentsJoinTheirPoints) {
  const ToySweep toy{.requests = 5};
  write(run, toy);
  const ParquetReader requests(run / "requests/part-1of1-000000.parquet");
  const ParquetReader timeline(run / "timeline/part-1of1-000000.parquet");
  const auto index = requests.integers("index");
  const auto keys = requests.keys();
  const auto number = requests.integers("request");
  const auto end = requests.texts("end");
  const auto measured = requests.booleans("measured");
  const auto finish = requests.numbers("finish_s");
  const auto prompt = requests.integers("prompt_tokens");
  const auto time = timeline.numbers("time_s");
  const auto output = timeline.numbers("output_tokens_per_s");
  ASSERT_EQ(index, timeline.integers("index"));
  std::size_t expected_rows = 0, at = 0;
  sweep::Point point;
  engine::Outcome outcome;
  for (std::uint64_t i = 0; i < toy.positions; ++i) {
    if (toy.rejected(i)) continue;
    toy.point(i, point);
    toy.outcome(i, outcome);
    for (std::size_t k = 0; k < outcome.requests.size(); ++k, ++at) {
      const engine::RequestRow& row = outcome.requests[k];
      ASSERT_EQ(index[at], std::int64_t(i));
      EXPECT_EQ(keys[at], point.key);
      EXPECT_EQ(number[at], row.number);
      EXPECT_EQ(end[at], k == 3 ? "refused" : "finished");
      EXPECT_EQ(measured[at] != 0, row.measured);
      EXPECT_EQ(prompt[at], row.prompt_tokens);
      if (k == 3) {
        EXPECT_TRUE(std::isnan(finish[at]));
      } else {
        EXPECT_EQ(finish[at], row.finish.value);
      }
      EXPECT_EQ(time[at], outcome.timeline[k].time.value);
      EXPECT_EQ(output[at], outcome.timeline[k].output.value);
    }
    expected_rows += outcome.requests.size();
  }
  EXPECT_GT(expected_rows, 1000u);
  EXPECT_EQ(index.size(), expected_rows);
  EXPECT_EQ(requests.field_metadata("arrival_s", "unit"), "s");
  EXPECT_EQ(requests.metadata("llmsweep.table"), "requests");
}

TEST_F(Sink, TablesNobodyAskedForAreNotThere) {
  write(run, ToySweep{});
  EXPECT_TRUE(std::filesystem::exists(run / "kernels"));
  EXPECT_FALSE(std::filesystem::exists(run / "requests"));
  EXPECT_FALSE(std::filesystem::exists(run / "timeline"));
}

TEST_F(Sink, ManyRequestsCloseAPart) {
  const ToySweep toy{.positions = 1000, .requests = 5};
  write(run, toy, {.details_per_part = 500});
  EXPECT_GT(table_files(run, "points").size(), 3u);
}

TEST_F(Sink, FilesSayWhatTheyHold) {
  write(run, ToySweep{});
  EXPECT_EQ(points().field_metadata("device.memory_bandwidth", "unit"), "B/s");
  EXPECT_EQ(points().field_metadata("step_time_s", "description"), "time of the step");
  EXPECT_EQ(points().metadata("llmsweep.run_yaml"), "sweep: toy\n");
  EXPECT_EQ(points().metadata("llmsweep.table"), "points");
  for (const char* name : {"program_version", "program_commit", "model_version", "arrow_version"}) {
    EXPECT_NE(kernels().metadata("llmsweep." + std::string(name)), "") << name;
  }
}

TEST_F(Sink, RepeatingColumnsAreDictionaries) {
  write(run, ToySweep{.positions = 20000}, {.points_per_part = 1 << 20});
  const auto file =
      parquet::ParquetFileReader::OpenFile((run / "points/part-1of1-000000.parquet").string());
  const auto group = file->metadata()->RowGroup(0);
  ASSERT_EQ(file->metadata()->num_row_groups(), 1);
  const auto encodings = [&](const char* name) {
    const auto chunk = group->ColumnChunk(file->metadata()->schema()->ColumnIndex(name));
    return std::set(chunk->encodings().begin(), chunk->encodings().end());
  };
  for (const char* name : {"device", "axis.device", "status", "step.batch", "model.layers"}) {
    EXPECT_TRUE(encodings(name).contains(parquet::Encoding::RLE_DICTIONARY)) << name;
  }
  for (const char* name : {"key", "device.clock", "step_time_s"}) {
    const auto chunk = group->ColumnChunk(file->metadata()->schema()->ColumnIndex(name));
    EXPECT_EQ(chunk->compression(), parquet::Compression::ZSTD) << name;
    EXPECT_FALSE(encodings(name).contains(parquet::Encoding::RLE_DICTIONARY)) << name;
  }
}

TEST_F(Sink, ThreadsAndPartSizesChangeNoRow) {
  const ToySweep toy{.positions = 3000, .requests = 2};
  write(run, toy);
  ASSERT_EQ(table_rows(run, "points").size(), 2700u);
  for (const int threads : {2, 7}) {
    const auto other = temporary.path() / std::to_string(threads);
    write(other, toy, {.points_per_part = std::size_t(100 * threads)}, threads);
    EXPECT_GT(table_files(other, "points").size(), 2u);
    for (const char* table : kTableNames)
      EXPECT_EQ(table_rows(other, table), table_rows(run, table));
  }
}

TEST_F(Sink, ShardsTogetherAreTheWhole) {
  const ToySweep toy{.positions = 3000, .requests = 2};
  write(run, toy);
  const auto other = temporary.path() / "shards";
  for (std::uint32_t k = 1; k <= 3; ++k) {
    RunFolder folder = opened(other, toy, {k, 3});
    ParquetSink sink(folder, toy.schema(), {.points_per_part = 300});
    tests::run_toy(toy, sink, sweep::shard_of(toy.positions, k, 3), 64, 2);
  }
  for (const char* table : kTableNames) EXPECT_EQ(table_rows(other, table), table_rows(run, table));
  const auto summary = summarise(other);
  ASSERT_TRUE(summary.ok());
  EXPECT_EQ(summary->shards.size(), 3u);
  EXPECT_TRUE(summary->complete());
  EXPECT_EQ(summary->tally.rows(), 2700u);
  EXPECT_EQ(summary->tally.positions(), 3000u);
}

TEST_F(Sink, AnOldPartIsWrittenThoughSmall) {
  const ToySweep toy;
  auto time = std::chrono::steady_clock::time_point{};
  RunFolder folder = opened(run, toy);
  ParquetSink sink(folder, toy.schema(), {.oldest = 10s, .now = [&time] { return time; }});
  tests::add_chunk(toy, sink, {0, 10});
  time += 9s;
  tests::add_chunk(toy, sink, {10, 20});
  EXPECT_EQ(table_files(run, "points").size(), 0u);
  time += 1s;
  tests::add_chunk(toy, sink, {20, 30});
  sink.flush();
  EXPECT_EQ(table_files(run, "points").size(), 1u);
  EXPECT_EQ(summarise(run)->parts[0].positions, (std::vector<sweep::IndexRange>{{0, 30}}));
}

// A day of parts of ten seconds would be thousands of files.
TEST_F(Sink, PartsOfALongRunAreAHundredthOfItOld) {
  const ToySweep toy;
  auto time = std::chrono::steady_clock::time_point{};
  RunFolder folder = opened(run, toy);
  ParquetSink sink(folder, toy.schema(), {.oldest = 10s, .now = [&time] { return time; }});
  time += 10'000s;
  tests::add_chunk(toy, sink, {0, 10});
  time += 90s;
  tests::add_chunk(toy, sink, {10, 20});
  EXPECT_EQ(table_files(run, "points").size(), 0u);
  time += 20s;
  tests::add_chunk(toy, sink, {20, 30});
  time += 20s;
  tests::add_chunk(toy, sink, {30, 40});
  sink.flush();
  EXPECT_EQ(summarise(run)->parts[0].positions, (std::vector<sweep::IndexRange>{{0, 30}}));
}

TEST_F(Sink, PositionsWithoutRowsAreStillDone) {
  const ToySweep toy;
  {
    RunFolder folder = opened(run, toy);
    ParquetSink sink(folder, toy.schema());
    tests::add_chunk(toy, sink, {3, 4});  // rejected
    sink.flush();
  }
  EXPECT_EQ(table_files(run, "points").size(), 0u);
  const RunFolder folder = opened(run, toy);
  EXPECT_EQ(folder.done(), sweep::IndexSet(sweep::IndexRange{3, 4}));
  EXPECT_EQ(folder.tally().rejected, (std::vector<std::uint64_t>{1}));
}

TEST_F(Sink, FlushMakesPermanentWhatWasTaken) {
  const ToySweep toy;
  RunFolder folder = opened(run, toy);
  ParquetSink sink(folder, toy.schema());
  tests::add_chunk(toy, sink, {0, 100});
  sink.flush();
  EXPECT_EQ(tests::table_indices(run, "points").size(), 90u);
  sink.flush();
  EXPECT_EQ(summarise(run)->parts.size(), 1u);
}

TEST_F(Sink, ARemovedFolderIsAClearFailure) {
  const ToySweep toy;
  RunFolder folder = opened(run, toy);
  ParquetSink sink(folder, toy.schema());
  tests::add_chunk(toy, sink, {0, 100});
  std::filesystem::remove_all(run);
  const std::string folder_of_kernels = (run / "kernels").string();
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      sink.flush();
      FAIL() << "a flush into nothing";
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.what(),
                "cannot create " + folder_of_kernels +
                    ": No such file or directory\n  hint: there is no such folder to "
                    "write to, or it was moved or removed meanwhile");
    }
  }
  EXPECT_THROW(tests::add_chunk(toy, sink, {100, 200}), Failure);
}

}  // namespace
}  // namespace results

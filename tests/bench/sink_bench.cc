// How fast rows become permanent, and how that compares with plain Arrow writing the same rows.
// The rows are real: a step of a 70B model on 16384 variants of a device, 15 or more kernels each.
//
//     build/release/llmsweep_bench --benchmark_filter=Sink
#include <arrow/api.h>
#include <arrow/io/file.h>
#include <benchmark/benchmark.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/writer.h>
#include <sys/resource.h>

#include <filesystem>
#include <string>
#include <vector>

#include "engine/evaluate.h"
#include "engine/leaves/leaves.h"
#include "results/parquet_sink.h"
#include "tests/support/toy_rows.h"

namespace {

using Clock = std::chrono::steady_clock;

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) { return double(t.tv_sec) + 1e-6 * double(t.tv_usec); };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

engine::Scenario base_scenario() {
  engine::Scenario base;
  base.device.name = "bench-device";
  base.device.multiprocessors = 132;
  base.device.clock = engine::Hertz{1.8e9};
  base.device.peak.bf16 = engine::FlopsPerSecond{989e12};
  base.device.peak.fp8 = engine::FlopsPerSecond{1979e12};
  base.device.vector_peak = engine::FlopsPerSecond{67e12};
  base.device.memory_capacity = engine::Bytes{80e9};
  base.device.memory_bandwidth = engine::BytesPerSecond{3.35e12};
  base.device.l2_capacity = engine::Bytes{50e6};
  base.device.l2_bandwidth = engine::BytesPerSecond{10e12};
  base.device.scale_up = {.name = "bench-link",
                          .topology = engine::Topology::fabric,
                          .bandwidth = engine::BytesPerSecond{450e9},
                          .latency = engine::Seconds{1e-6},
                          .devices = 8};
  base.device.complete();
  base.model.name = "bench-70b";
  base.model.layers = 80;
  base.model.hidden = 8192;
  base.model.heads = 64;
  base.model.kv_heads = 8;
  base.model.head_dim = 128;
  base.model.intermediate = 28672;
  base.model.vocabulary = 128256;
  base.model.max_context = 131072;
  base.parallel.tp = 8;
  return base;
}

// The rows of one part, ready to be handed to a sink again and again.
struct Rows {
  results::SchemaInputs inputs;
  std::vector<sweep::Point> points;
  std::vector<engine::Outcome> outcomes;
  std::size_t kernel_rows = 0;

  static constexpr std::uint64_t kRows = 16 << 10;
  static constexpr std::uint64_t kChunk = 256;

  Rows() {
    inputs.base = base_scenario();
    const engine::LeafTable& table = engine::leaf_table();
    for (const char* path : {"step.batch", "step.context", "device.memory_bandwidth",
                             "device.l2_capacity", "device.clock", "parallel.tp", "quant.weights",
                             "device.name", "device.scale_up.bandwidth", "host.graphs"}) {
      if (const int leaf = table.find_leaf(path); leaf >= 0) inputs.varied_leaves.push_back(leaf);
    }
    inputs.labels.push_back({"step.batch", {"1", "2", "4", "8", "16", "32", "64", "128"}});
    inputs.labels.push_back({"step.context", {"1024", "2048", "3072", "4096"}});
    for (std::uint64_t i = 0; i < kRows; ++i) add(i);
  }

  void add(std::uint64_t i) {
    sweep::Point point{.index = i, .scenario = inputs.base};
    engine::Scenario& scenario = point.scenario;
    point.labels = {std::int32_t(i % 8), std::int32_t(i / 8 % 4)};
    scenario.step.batch = std::int64_t(1) << (i % 8);
    scenario.step.context = std::int64_t(1024 * (1 + i / 8 % 4));
    scenario.device.memory_bandwidth = engine::BytesPerSecond{2e12 + 1e10 * double(i / 32 % 32)};
    scenario.device.clock = engine::Hertz{1.2e9 + 1e7 * double(i / 1024)};
    point.key = engine::key_of(scenario);
    points.push_back(std::move(point));
    outcomes.push_back(engine::evaluate(scenario));
    kernel_rows += outcomes.back().kernels.size();
  }

  void feed(sweep::RowSink& sink, std::uint64_t first_index) {
    for (std::uint64_t i = 0; i < kRows; i += kChunk) {
      auto chunk = sink.start_chunk();
      sweep::Tally tally;
      for (std::uint64_t j = i; j < i + kChunk; ++j) {
        points[j].index = first_index + j;
        chunk->add(points[j], outcomes[j]);
        ++tally.by_status[std::size_t(outcomes[j].status)];
      }
      sink.finish_chunk(std::move(chunk), {first_index + i, first_index + i + kChunk}, tally);
    }
  }
};

Rows& rows() {
  static Rows rows;
  return rows;
}

// CPU and wall time of `parts` parts through the sink into an empty folder.
struct Spent {
  double cpu = 0;
  double wall = 0;
};

template <class Work>
Spent spent_on(Work work) {
  const double cpu = cpu_seconds();
  const auto start = Clock::now();
  work();
  return {cpu_seconds() - cpu, std::chrono::duration<double>(Clock::now() - start).count()};
}

Spent sink_parts(const std::filesystem::path& folder, std::uint64_t parts) {
  return spent_on([&] {
    auto run = results::RunFolder::open(
        folder, {.run_yaml = "bench", .spec_hash = "bench", .positions = parts * Rows::kRows});
    results::ParquetSink sink(*run, rows().inputs);
    for (std::uint64_t i = 0; i < parts; ++i) rows().feed(sink, i * Rows::kRows);
    sink.flush();
  });
}

std::shared_ptr<arrow::Table> read_table(const std::filesystem::path& file, bool dictionaries) {
  auto source = arrow::io::ReadableFile::Open(file.string()).ValueOrDie();
  parquet::arrow::FileReaderBuilder builder;
  if (!builder.Open(source).ok()) std::abort();
  parquet::ArrowReaderProperties properties;
  const parquet::SchemaDescriptor* schema = builder.raw_reader()->metadata()->schema();
  for (int i = 0; i < schema->num_columns(); ++i) {
    const bool text = schema->Column(i)->physical_type() == parquet::Type::BYTE_ARRAY;
    properties.set_read_dictionary(i, dictionaries && text);
  }
  auto reader = builder.properties(properties)->Build().ValueOrDie();
  arrow::ChunkedArrayVector columns;
  for (int i = 0; i < schema->num_columns(); ++i) {
    std::shared_ptr<arrow::ChunkedArray> column;
    if (!reader->ReadColumn(i, &column).ok()) std::abort();
    columns.push_back(column);
  }
  arrow::FieldVector fields;
  for (int i = 0; i < schema->num_columns(); ++i) {
    fields.push_back(arrow::field(schema->Column(i)->name(), columns[std::size_t(i)]->type(),
                                  schema->Column(i)->max_definition_level() > 0));
  }
  return arrow::Table::Make(arrow::schema(fields), columns);
}

// What a straightforward program does with the same table: default encodings, the same compression.
Spent arrow_write(const std::vector<std::shared_ptr<arrow::Table>>& tables,
                  const std::filesystem::path& folder, std::uint64_t parts) {
  const auto properties = parquet::WriterProperties::Builder()
                              .compression(parquet::Compression::ZSTD)
                              ->compression_level(1)
                              ->build();
  return spent_on([&] {
    for (std::uint64_t i = 0; i < parts; ++i) {
      for (std::size_t t = 0; t < tables.size(); ++t) {
        const auto file = folder / (std::to_string(i) + "-" + std::to_string(t) + ".parquet");
        auto out = arrow::io::FileOutputStream::Open(file.string()).ValueOrDie();
        if (!parquet::arrow::WriteTable(*tables[t], arrow::default_memory_pool(), out,
                                        tables[t]->num_rows(), properties)
                 .ok()) {
          std::abort();
        }
      }
    }
  });
}

std::vector<std::shared_ptr<arrow::Table>> written_tables(const std::filesystem::path& folder,
                                                          bool dictionaries) {
  std::vector<std::shared_ptr<arrow::Table>> tables;
  for (const char* table : {"points", "kernels"}) {
    tables.push_back(read_table(folder / table / "part-1of1-000000.parquet", dictionaries));
  }
  return tables;
}

void SinkBesidePlainArrow(benchmark::State& state) {
  constexpr std::uint64_t parts = 4;
  rows();
  double ours = 0;
  double texts = 0;
  double dictionaries = 0;
  double wall = 0;
  double points = 0;
  for (auto _ : state) {
    const tests::TemporaryFolder folder;
    const Spent sink = sink_parts(folder.path() / "run", parts);
    const tests::TemporaryFolder plain;
    texts += arrow_write(written_tables(folder.path() / "run", false), plain.path(), parts).cpu;
    dictionaries +=
        arrow_write(written_tables(folder.path() / "run", true), plain.path(), parts).cpu;
    ours += sink.cpu;
    wall += sink.wall;
    points += double(parts * Rows::kRows);
  }
  state.counters["points_per_cpu_s"] = points / ours;
  state.counters["points_per_wall_s"] = points / wall;
  state.counters["kernel_rows_per_point"] = double(rows().kernel_rows) / double(Rows::kRows);
  state.counters["cpu_s_per_million"] = 1e6 * ours / points;
  state.counters["ratio_to_arrow"] = ours / texts;
  state.counters["ratio_to_arrow_of_dictionaries"] = ours / dictionaries;
}
BENCHMARK(SinkBesidePlainArrow)->Unit(benchmark::kMillisecond)->MinTime(3);

// The sink alone, for a profiler.
void SinkAlone(benchmark::State& state) {
  constexpr std::uint64_t parts = 16;
  rows();
  double cpu = 0;
  for (auto _ : state) {
    const tests::TemporaryFolder folder;
    cpu += sink_parts(folder.path() / "run", parts).cpu;
  }
  const double points = double(state.iterations()) * double(parts * Rows::kRows);
  state.counters["cpu_s_per_million"] = 1e6 * cpu / points;
}
BENCHMARK(SinkAlone)->Unit(benchmark::kMillisecond)->MinTime(3);

// Handing rows over, without making files of them: what a worker pays beside its evaluation.
void SinkAppend(benchmark::State& state) {
  rows();
  const tests::TemporaryFolder folder;
  auto run = results::RunFolder::open(folder.path() / "run",
                                      {.run_yaml = "bench", .spec_hash = "bench", .positions = 1});
  results::ParquetSink sink(*run, rows().inputs);
  std::uint64_t i = 0;
  auto chunk = sink.start_chunk();
  for (auto _ : state) {
    if (i % Rows::kChunk == 0) {
      sink.finish_chunk(sink.start_chunk(), {i, i + 1}, {});
      chunk = sink.start_chunk();
    }
    chunk->add(rows().points[i % Rows::kRows], rows().outcomes[i % Rows::kRows]);
    ++i;
  }
  state.SetItemsProcessed(std::int64_t(i));
}
BENCHMARK(SinkAppend);

}  // namespace

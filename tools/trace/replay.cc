#include "tools/trace/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>

#include "engine/evaluate.h"
#include "results/batch_sink.h"
#include "results/durable_file.h"
#include "tools/query/points.h"

namespace tools {
namespace {

bool same(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

// The place of a point in the rows of a run, or their number.
std::size_t row_of(const RunRows& rows, std::uint64_t index) {
  const std::vector<double> indices = rows.numbers("index");
  return std::size_t(std::ranges::find(indices, double(index)) - indices.begin());
}

engine::Key key_of_row(const RunRows& rows, std::size_t row) {
  for (const results::ParquetReader& file : rows.runs().front().files) {
    if (row < file.rows()) return file.keys()[row];
    row -= file.rows();
  }
  return {};
}

}  // namespace

Replay replay(engine::Scenario scenario, const engine::Resources& resources,
              const ReplayOptions& options) {
  Replay made;
  made.log.most_steps = options.steps;
  made.log.most_with_kernels = options.kernels;
  engine::WorkMeter work;
  engine::Scratch scratch;
  if (scenario.task != engine::Task::serve) {
    scratch.write_down(&made.log);
    engine::evaluate_into(scenario, resources, made.outcome, work, scratch);
    return made;
  }
  engine::evaluate_into(scenario, resources, made.outcome, work, scratch);
  const double makespan = made.outcome.metrics.makespan.value;
  if (made.outcome.status != engine::Status::ok || !(makespan > 0)) return made;
  scenario.output.requests = true;
  if (options.every > 0) {
    scenario.output.timeline = engine::Seconds{options.every};
  } else if (scenario.output.timeline.value <= 0) {
    scenario.output.timeline = engine::Seconds{makespan / double(options.moments)};
  }
  scratch.write_down(&made.log);
  engine::evaluate_into(scenario, resources, made.outcome, work, scratch);
  return made;
}

std::optional<std::string> disagreement(const std::string& folder, const sweep::Point& point,
                                        const engine::Outcome& outcome) {
  const auto rows = RunRows::open({folder});
  if (!rows) return engine::to_text(rows.mistakes());
  const std::size_t row = row_of(*rows, point.index);
  if (row == rows->rows()) return fmt::format("point {} is not among its rows yet", point.index);
  if (const engine::Key key = key_of_row(*rows, row); key != point.key) {
    return fmt::format(
        "point {} has the key {} there and {} here: another model version, calibration or spec",
        point.index, engine::to_hex(key), engine::to_hex(point.key));
  }
  const double* values = results::metric_values(outcome.metrics);
  for (std::size_t i = 0; i < results::kMetrics; ++i) {
    const results::Metric& metric = results::metric_table()[i];
    if (rows->find(metric.column) == nullptr) continue;
    const double there = rows->numbers(metric.column)[row];
    const double here = values[i] * metric.unit.per_base;
    if (!same(there, here)) {
      return fmt::format("point {} has {} {} there and {} here: another program", point.index,
                         metric.column, there, here);
    }
  }
  return std::nullopt;
}

std::vector<std::string> write_rows(const std::string& folder, const results::SchemaInputs& inputs,
                                    const sweep::Point& point, const engine::Outcome& outcome) {
  results::BatchSink sink(inputs, results::BatchTables::all);
  auto chunk = sink.start_chunk();
  chunk->add(point, outcome);
  sink.finish_chunk(std::move(chunk), {point.index, point.index + 1}, {});
  std::vector<std::string> files;
  for (const results::Table table :
       {results::table_named("requests"), results::table_named("timeline")}) {
    if (sink.rows(table) == 0) continue;
    std::filesystem::create_directories(folder);
    files.push_back(folder + "/" + std::string(engine::name_of(table)) + ".parquet");
    results::write_durably(std::filesystem::absolute(files.back()), sink.file(table).bytes);
  }
  return files;
}

}  // namespace tools

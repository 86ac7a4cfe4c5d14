#include "results/part_encoder.h"

#include <algorithm>
#include <utility>

#include "engine/base/version.h"
#include "results/detail_table.h"

namespace results {
namespace {

// With what a manifest says first, so that its first line can be written again from any part.
Metadata file_metadata(Table table, const RunIdentity& run) {
  return {{"llmsweep.table", std::string(engine::name_of(table))},
          {"llmsweep.program_version", std::string(engine::program_version())},
          {"llmsweep.program_commit", std::string(engine::program_commit())},
          {"llmsweep.model_version", std::to_string(engine::kModelVersion)},
          {"llmsweep.arrow_version", arrow_version()},
          {"llmsweep.spec_hash", run.spec_hash},
          {"llmsweep.positions", std::to_string(run.positions)},
          {"llmsweep.run_yaml", run.run_yaml}};
}

}  // namespace

PartEncoder::PartEncoder(const SchemaInputs& inputs, const RunIdentity& run,
                         const std::vector<std::string>& only)
    : inputs_(inputs), layout_(inputs) {
  std::vector<Column> columns = point_columns(inputs);
  if (!only.empty()) {
    std::erase_if(columns, [&](const Column& column) {
      return std::ranges::find(only, column.name) == only.end();
    });
  }
  formats_.emplace_back(std::move(columns), file_metadata(Table::points, run));
  each_detail([&](Table table, const auto&) {
    formats_.emplace_back(detail_columns(table), file_metadata(table, run));
  });
}

PartEncoder::~PartEncoder() = default;

FileBytes PartEncoder::file(Table table, const PartRows& part) const {
  const ParquetFormat& format = formats_[std::size_t(table)];
  return format.write(
      table == Table::points ? point_pages(part) : detail_pages(table, format.columns(), part),
      part.rows[table]);
}

}  // namespace results

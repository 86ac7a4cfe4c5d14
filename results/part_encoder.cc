#include "results/part_encoder.h"

#include "engine/base/version.h"
#include "results/row_table.h"

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

PartEncoder::PartEncoder(const SchemaInputs& inputs, const RunIdentity& run)
    : inputs_(inputs),
      layout_(inputs),
      formats_{{ParquetFormat(point_columns(inputs), file_metadata(Table::points, run)),
                ParquetFormat(kernel_columns(), file_metadata(Table::kernels, run)),
                ParquetFormat(request_columns(), file_metadata(Table::requests, run)),
                ParquetFormat(timeline_columns(), file_metadata(Table::timeline, run))}} {}

PartEncoder::~PartEncoder() = default;

FileBytes PartEncoder::file(Table table, const PartRows& part) const {
  return formats_[table].write(pages(table, part), part.rows[table]);
}

std::vector<ColumnPages> PartEncoder::pages(Table table, const PartRows& part) const {
  switch (table) {
    case Table::points:
      return point_pages(part);
    case Table::kernels:
      return kernel_pages(part);
    case Table::requests:
      return row_pages<engine::RequestRow>(formats_[table].columns(), part);
    case Table::timeline:
      return row_pages<engine::TimelineRow>(formats_[table].columns(), part);
  }
  return {};
}

}  // namespace results

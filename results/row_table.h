// Tables whose rows are structs with a field list (engine::RequestRow, engine::TimelineRow): their
// pages, and the rows of a file again. The kernels table, which every point has, is written by hand
// in kernels_table.cc; its rows come a hundred times as often.
#pragma once

#include <vector>

#include "results/page_encoding.h"
#include "results/part_encoder.h"
#include "results/reader.h"

namespace results {

// `columns` are those of the table, from schema.h.
template <class Row>
std::vector<ColumnPages> row_pages(const std::vector<Column>& columns, const PartRows& part);

// All rows of a file, in order.
template <class Row>
std::vector<Row> read_rows(const std::vector<Column>& columns, const ParquetReader& file);

}  // namespace results

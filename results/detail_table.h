// The tables beside points: their columns, their pages, and their rows again. What tables there are is said
// by engine::kDetailTables alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/outcome.h"
#include "results/page_encoding.h"
#include "results/part_encoder.h"
#include "results/reader.h"
#include "results/schema.h"
#include "results/table.h"

namespace results {

// `index` and `key` of the point, then those of the row.
std::vector<Column> detail_columns(Table table);

std::vector<ColumnPages> detail_pages(Table table, const std::vector<Column>& columns,
                                      const PartRows& part);

// Gives the outcomes of these points (by their index) their rows from a file of the table. Rows of points
// that are not there are a Failure.
void read_details(Table table, const ParquetReader& file, std::span<const std::int64_t> points,
                  std::span<engine::Outcome> outcomes);

// Memory that `rows` rows of a table take in outcomes.
std::size_t detail_bytes(Table table, std::size_t rows);

}  // namespace results

// Turns the rows of a part, still in their chunks, into the bytes of its files.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "results/chunk_buffer.h"
#include "results/parquet_file.h"
#include "results/run_folder.h"
#include "results/schema.h"

namespace results {

// Chunks in the order of their positions.
struct PartRows {
  std::vector<const ChunkBuffer*> chunks;
  ByTable<std::size_t> rows;
};

// Read-only once built, so that any number of threads may encode at once.
class PartEncoder {
 public:
  // Of points only the columns of these names, in the order of the table; none named: all of them.
  PartEncoder(const SchemaInputs& inputs, const RunIdentity& run,
              const std::vector<std::string>& only = {});
  ~PartEncoder();

  // There are such rows.
  FileBytes file(Table table, const PartRows& part) const;

 private:
  std::vector<ColumnPages> point_pages(const PartRows& part) const;  // points_table.cc

  SchemaInputs inputs_;
  RowLayout layout_;
  std::vector<ParquetFormat> formats_;  // by table
};

}  // namespace results

// Turns the rows of a part, still in their chunks, into the bytes of its two files.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "results/chunk_buffer.h"
#include "results/parquet_file.h"
#include "results/schema.h"

namespace results {

// Chunks in the order of their positions.
struct PartRows {
  std::vector<const ChunkBuffer*> chunks;
  std::size_t rows = 0;
  std::size_t kernel_rows = 0;
};

// Read-only once built, so that any number of threads may encode at once.
class PartEncoder {
 public:
  PartEncoder(const SchemaInputs& inputs, const std::string& run_yaml);
  ~PartEncoder();

  FileBytes points(const PartRows& part) const;
  FileBytes kernels(const PartRows& part) const;

 private:
  SchemaInputs inputs_;
  RowLayout layout_;
  ParquetFormat points_;
  ParquetFormat kernels_;
};

}  // namespace results

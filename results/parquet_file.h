// One Parquet file, put together in memory from the pages of its columns: schema, compression,
// metadata, footer.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "results/page_encoding.h"
#include "results/schema.h"

namespace results {

// The bytes of a finished file and whatever keeps them alive.
struct FileBytes {
  std::string_view bytes;
  std::shared_ptr<const void> owner;
};

using Metadata = std::vector<std::pair<std::string, std::string>>;

// What all files of a table have in common. Read-only once built.
class ParquetFormat {
 public:
  ParquetFormat(std::vector<Column> columns, const Metadata& metadata);
  ~ParquetFormat();
  ParquetFormat(ParquetFormat&&) noexcept;

  const std::vector<Column>& columns() const;
  // The pages of every column, in order; the file is one row group.
  FileBytes write(const std::vector<ColumnPages>& pages, std::size_t rows) const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

// The version of the Arrow library in use.
std::string arrow_version();

}  // namespace results

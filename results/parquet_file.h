// One Parquet file written in memory: how our columns become Arrow columns with sensible encodings.
// Arrow's types are only named here; nobody outside results sees this header's inside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "results/schema.h"

namespace arrow {
class Array;
class Schema;
}  // namespace arrow

namespace results {

// The bytes of a finished file and whatever keeps them alive.
struct FileBytes {
  std::string_view bytes;
  std::shared_ptr<const void> owner;
};

// How the values of a column lie in the file. Constant and repeating values go through a dictionary;
// values that hardly repeat would only make the dictionary as long as the column; indices go up.
enum class Encoding : std::uint8_t { dictionary, plain, delta };

using Metadata = std::vector<std::pair<std::string, std::string>>;

class ParquetFormat {
 public:
  ParquetFormat(std::vector<Column> columns, const Metadata& metadata);
  ~ParquetFormat();

  const std::vector<Column>& columns() const { return columns_; }
  // One array a column, all of the same length; a text may come as a dictionary.
  FileBytes write(const std::vector<std::shared_ptr<arrow::Array>>& arrays,
                  const std::vector<Encoding>& encodings) const;

 private:
  std::vector<Column> columns_;
  std::shared_ptr<arrow::Schema> schema_;
};

// The version of the Arrow library in use.
std::string arrow_version();

}  // namespace results

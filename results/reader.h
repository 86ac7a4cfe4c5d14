// Reads the files of a run back: whole columns, for tools, tests and the archive.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/leaves/leaves.h"
#include "results/schema.h"

namespace results {

// A column of texts: each row has the number of one of the names, or none. A name may be there twice.
struct CodedTexts {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> codes;
  std::vector<std::string> names;
};

// One Parquet file. Columns are read when asked for, and the checksums of their pages are verified; a
// column that is not there, is damaged, or holds something else, is a Failure that names the file.
class ParquetReader {
 public:
  explicit ParquetReader(const std::filesystem::path& file);
  // From the bytes of the file.
  ParquetReader(const std::filesystem::path& file, std::string bytes);
  ~ParquetReader();
  ParquetReader(ParquetReader&&) noexcept;

  const std::filesystem::path& path() const;
  std::uint64_t rows() const;
  std::vector<std::string> column_names() const;
  // The columns as they were written; `source` is not kept.
  std::vector<Column> columns() const;
  bool has(std::string_view column) const;
  // The file's own metadata ("llmsweep.run_yaml"), or a field's ("unit"); empty where there is none.
  std::string metadata(const std::string& name) const;
  std::vector<std::pair<std::string, std::string>> metadata()
      const;  // of the file, all that is ours
  std::string field_metadata(std::string_view column, const std::string& name) const;

  std::vector<double> numbers(std::string_view column) const;  // null: NaN; integers are converted
  std::vector<std::int64_t> integers(std::string_view column) const;  // null: kNullInteger
  std::vector<std::uint8_t> booleans(std::string_view column) const;  // null: kNullBoolean
  std::vector<std::optional<std::string>> texts(std::string_view column) const;
  CodedTexts coded_texts(std::string_view column) const;
  // The bytes of the one value that every row has, by the file's own account; empty where there are
  // several, a null, or no account.
  std::string constant(std::string_view column) const;
  std::vector<engine::Key> keys() const;
  // Texts as numbers into `names`; a text that is not among them is a Failure, and so is a null that no code stands for.
  std::vector<std::uint8_t> codes(std::string_view column, std::string_view const* names,
                                  std::size_t count,
                                  std::optional<std::uint8_t> null_code = std::nullopt) const;

 private:
  struct Impl;
  explicit ParquetReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The files of a table of a run, in the order of their names; `table` is its folder: "points".
std::vector<std::filesystem::path> table_files(const std::filesystem::path& folder,
                                               const std::string& table);

}  // namespace results

// The points of one or several runs as columns, each read from Parquet when it is asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "results/reader.h"

namespace tools {

// A column of texts: each row has the number of one of the names, or none.
struct Coded {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> codes;
  std::vector<std::string> names;  // in the order of first appearance

  std::string_view operator[](std::size_t row) const {
    return codes[row] == kNone ? std::string_view() : std::string_view(names[codes[row]]);
  }
};

// The label of an axis is what the user wrote: column "axis.step.batch" for the axis "step.batch".
inline constexpr std::string_view kAxisPrefix = "axis.";
// Says which run a row is of, where there are several.
inline constexpr std::string_view kRunColumn = "run";

// One table of the runs ("points", "kernels", "requests"), rows one after another.
class RunRows {
 public:
  struct Run {
    std::filesystem::path folder;
    std::size_t rows = 0;
    std::vector<results::ParquetReader> files;
  };

  // Rows of the parts that the manifests name: what a run is still writing is not there yet. A folder
  // that is no run, manifests that cannot be believed and files that are missing or of another length
  // are mistakes; a file whose contents are damaged is a results::Failure.
  static engine::Result<RunRows> open(const std::vector<std::string>& folders,
                                      const std::string& table = "points");

  // Of one file of points, wherever it is of.
  static RunRows of(results::ParquetReader file);

  std::size_t rows() const { return rows_; }
  const std::vector<Run>& runs() const { return runs_; }
  // What is remarkable about the runs, as that one is not finished.
  const std::vector<std::string>& notes() const { return notes_; }
  // Those of all runs; a run that lacks one has nulls there.
  const std::vector<results::Column>& columns() const { return columns_; }
  const results::Column* find(std::string_view name) const;
  // The column of an axis or a setting: "step.batch" finds "axis.step.batch" first.
  const results::Column* find_axis(std::string_view name) const;
  // Labels of axes, and of runs where there are several; then settings that a sample draws.
  std::vector<results::Column> axes() const;

  std::vector<double> numbers(std::string_view column) const;  // NaN: null; of a flag 0 or 1
  // Of any column. Labels of an axis that a run does not have are what its points have there.
  Coded texts(std::string_view column) const;
  std::string metadata(std::size_t run, const std::string& name) const;

 private:
  Coded run_names() const;

  std::vector<Run> runs_;
  std::vector<std::string> notes_;
  std::vector<results::Column> columns_;
  std::size_t rows_ = 0;
};

// "there is no column 'x'", with what may have been meant.
engine::Mistake unknown_column(const RunRows& rows, std::string_view written,
                               const engine::Location& where);

bool is_number(const results::Column& column);

// An axis without its prefix, as people call it.
std::string axis_name(std::string_view column);

}  // namespace tools

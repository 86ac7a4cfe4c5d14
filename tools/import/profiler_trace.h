// A trace of the PyTorch profiler (record_shapes=True) as a kernel table: one row for each shape that a call of a known
// operator had, with the median time of its kernels.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/result.h"
#include "results/text_table.h"

namespace tools {

struct ProfiledKernels {
  results::TextTable table;  // in the columns of a kernel table
  std::size_t kernels = 0;   // of the trace
  double seconds = 0;        // that they took
  std::size_t taken = 0;     // of them, those behind the rows of the table
  double taken_seconds = 0;
  // Operators whose kernels have no row, and their time, longest first.
  std::vector<std::pair<std::string, double>> left_out;
};

engine::Result<ProfiledKernels> read_profiler_trace(const std::filesystem::path& file);

}  // namespace tools

// Calls of operators in a trace and the kernels they started, as a kernel table: one row for each shape, with the median
// time of its calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "results/text_table.h"
#include "tools/import/operator_shape.h"

namespace tools {

struct TracedKernels {
  results::TextTable table;  // in the columns of a kernel table
  std::size_t kernels = 0;   // of the trace
  double seconds = 0;        // that they took
  std::size_t taken = 0;     // of them, those behind the rows of the table
  double taken_seconds = 0;
  std::size_t timeless = 0;  // calls that took no time by the trace's clock: they have no row
  // Operators whose kernels have no row, and their time, longest first.
  std::vector<std::pair<std::string, double>> left_out;
};

class TracedCalls {
 public:
  // A call by the number that its kernels name. Calls and kernels may come in any order.
  void add_operator(std::int64_t call, std::string name, const std::vector<Argument>& arguments);
  void add_kernel(std::int64_t call, std::string_view name, double microseconds);

  bool empty() const { return calls_.empty(); }
  // `tool` names who measured: a row's `impl` is "tool:kernel".
  TracedKernels table(std::string_view tool) const;

 private:
  struct Operator {
    std::string name;
    std::optional<KernelShape> shape;
  };
  // The kernels that one call started.
  struct Call {
    double microseconds = 0;
    double longest = 0;
    std::string kernel;  // the longest one's name
    std::size_t kernels = 0;
  };

  std::map<std::int64_t, Operator> operators_;
  std::map<std::int64_t, Call> calls_;
};

}  // namespace tools

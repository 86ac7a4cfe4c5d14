// Two runs side by side: which point of one is which point of the other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/enum_names.h"
#include "engine/base/result.h"
#include "tools/query/points.h"

namespace tools {

// A key says everything about a point, the version of the formulas too. So where formulas or a file of
// the library have changed, only what the user wrote for the axes says which point is which.
enum class JoinBy : std::uint8_t {
  either,  // by key; what is left over by the labels of its axes
  key,
  labels,
};
constexpr std::array<std::string_view, 3> enum_names(JoinBy) { return {"either", "key", "labels"}; }

// Rows of the points tables of both runs.
struct RowPair {
  std::uint32_t old_row = 0;
  std::uint32_t new_row = 0;
};

struct RunPair {
  RunRows old_run;
  RunRows new_run;
  std::vector<RowPair> pairs;  // in the order of the new run's rows
  std::vector<std::uint32_t> only_old;
  std::vector<std::uint32_t> only_new;
  std::size_t by_labels = 0;       // of the pairs
  std::vector<std::string> notes;  // what is remarkable about the runs

  // Opens and joins. Not a run, a part that is damaged or two runs without a common point are mistakes;
  // what cannot be read is a results::Failure.
  static engine::Result<RunPair> open(const std::string& old_folder, const std::string& new_folder,
                                      JoinBy by);
};

// A point as its axes name it: "17 (device=h100-sxm, step.batch=64)".
class PointNames {
 public:
  explicit PointNames(const RunRows& run);
  std::string name(std::uint32_t row) const;
  double index(std::uint32_t row) const { return index_[row]; }

 private:
  std::vector<double> index_;
  std::vector<std::string> axes_;
  std::vector<Coded> labels_;
};

}  // namespace tools

// The one way to sum rows of the kernels table: rows of the same phase, op and family become one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/step/kernel_row.h"

namespace engine {

// Rows stand in the order in which each first came. A sum has the least founded tier, is extrapolated where some of it
// is, and is limited by the part without which all of it would take the least time; its algorithm is that of the
// greatest contribution.
class Breakdown {
 public:
  Breakdown() {
    for (auto& ops : first_) ops.fill(kNone);
  }

  void add(const KernelRow& row, double times = 1) { add(row, row.phase, times); }
  // Rows of a table belong to the phase of the step that looks them up.
  void add(const KernelRow& row, Phase phase, double times);

  // The sums so far; what limits them is known once they are taken.
  const std::vector<KernelRow>& rows() const { return rows_; }
  std::vector<KernelRow> take() &&;
  void clear() { *this = Breakdown(); }

 private:
  static constexpr std::int32_t kNone = -1;
  struct Place {
    std::int32_t next = kNone;  // the next row of the same phase and op, of another family
    Seconds greatest{-1};       // contribution so far
  };
  std::size_t place_of(const KernelRow& row, Phase phase);

  using ByOp = std::array<std::int32_t, enum_names(OpName{}).size()>;
  std::array<ByOp, enum_names(Phase{}).size()> first_;
  std::vector<KernelRow> rows_;
  std::vector<Place> places_;  // of rows_
};

}  // namespace engine

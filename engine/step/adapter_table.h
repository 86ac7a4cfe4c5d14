// Times of the low-rank adapters of a step, which follow from its tokens and from how many different adapters they have:
// timed where a simulation looks, and counted where steps use them.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/step/breakdown.h"
#include "engine/step/kernel_sums.h"

namespace engine {

class AdapterTable {
 public:
  // Nothing is counted. The context outlives the use; times stay, as it is no other than before.
  void reset(const StepContext& context);
  // As above, and no times are known: they follow from another context.
  void forget(const StepContext& context);

  // The cell of a step of `tokens` with `adapters` different ones.
  std::int32_t cell_at(std::int64_t tokens, std::int64_t adapters);
  const KernelSums& at(std::int32_t cell) const { return cells_[std::size_t(cell)].sums; }
  void use(std::int32_t cell, Phase phase, double steps) {
    cells_[std::size_t(cell)].steps[std::size_t(phase)] += steps;
  }

  // Adds the rows of everything counted in a phase, and what it would save.
  void report(Phase phase, Breakdown& rows) const;
  void save(Phase phase, Savings& saved) const;

 private:
  struct Cell {
    std::int64_t tokens = 0, adapters = 0;
    KernelSums sums;
    std::uint32_t first_row = 0, last_row = 0;  // in rows_
    ByPhase steps{};
  };

  // Cells in the order of their tokens and adapters, so that sums do not depend on which points used the table before.
  std::vector<const Cell*> ordered() const;

  const StepContext* context_ = nullptr;
  std::unordered_map<std::uint64_t, std::int32_t> index_;
  std::vector<Cell> cells_;
  std::vector<KernelRow> rows_;
};

}  // namespace engine

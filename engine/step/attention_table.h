// Times of the attention of decodes: linear in what a batch attends to between two knots, and counted where steps use
// them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/step/breakdown.h"
#include "engine/step/kernel_sums.h"
#include "engine/step/octave_grid.h"

namespace engine {

class AttentionTable {
 public:
  using ContextGrid = OctaveGrid<2>;  // of knots
  // Which attention of decodes: of layers with a window or without, on its own or in the kernel that reads the step's
  // prompts.
  struct Kernel {
    bool window = false;
    bool joined = false;
  };
  // Attention of one batch between two knots.
  struct Cell {
    double low = 0, high = 0;  // knots
    KernelSums at_low;         // kernels at the lower one
    KernelSums per_token;      // and what a token beyond it adds
    std::int32_t batch = 0;
    std::uint32_t row_low = 0, row_high = 0;  // in rows_
    ByPhase steps{};
    ByPhase sum{};  // of the context over those steps
  };
  // What the longest context takes beyond the mean.
  struct Overhang {
    KernelSums per_key;
    std::uint32_t row = 0;  // in rows_, of one key
    ByPhase keys{};         // summed over steps
  };

  // Nothing is counted. The context outlives the use; times stay, as it is no other than before.
  void reset(const StepContext& context);
  // As above, and no times are known: they follow from another context, and sequences have that many new tokens.
  void forget(const StepContext& context, std::int64_t queries = 1);

  // Which layers there are, whether a step's prompts and decodes share a kernel, and whether unequal contexts take
  // longer than equal ones.
  bool full() const { return full_; }
  bool windowed() const { return windowed_; }
  bool joined() const { return joined_; }
  bool uneven() const { return uneven_; }
  // Attention kernels of the decodes of one step.
  double launches() const { return launches_; }

  // Room for the cells of one more batch size; batches are numbered in the order in which they come.
  void add_batch(std::int64_t sequences);
  std::int32_t cell_at(std::int32_t batch, double context, Kernel kernel) {
    const std::int64_t place = ContextGrid::place(context);
    const std::int64_t before = (kernel.window ? kContextPlaces : 0) +
                                (kernel.joined ? (windowed_ ? 2 : 1) * kContextPlaces : 0);
    const std::size_t first = batches_[std::size_t(batch)].first_cell + std::size_t(before);
    std::int32_t& index = cell_index_[first + std::size_t(std::min(place, kContextPlaces - 1))];
    if (index < 0) index = add_cell(batch, place, kernel);
    return index;
  }
  const Cell& cell(std::int32_t index) const { return cells_[std::size_t(index)]; }
  const Overhang& overhang(std::int32_t batch, bool joined) const {
    const Batch& entry = batches_[std::size_t(batch)];
    return joined ? entry.joined : entry.alone;
  }

  // Counts steps of a cell, which attended to `context_sum` tokens together, and keys of overhang.
  void use(std::int32_t cell, Phase phase, double steps, double context_sum) {
    cells_[std::size_t(cell)].steps[std::size_t(phase)] += steps;
    cells_[std::size_t(cell)].sum[std::size_t(phase)] += context_sum;
  }
  void use_overhang(std::int32_t batch, bool joined, Phase phase, double keys) {
    Batch& entry = batches_[std::size_t(batch)];
    (joined ? entry.joined : entry.alone).keys[std::size_t(phase)] += keys;
  }

  // Adds the kernels of everything counted in a phase to sums[batch], and its rows, batches in the given order.
  void sum_by_batch(Phase phase, std::vector<KernelSums>& sums) const;
  void report(Phase phase, Breakdown& rows) const;
  void order(const std::vector<std::int32_t>& batches);
  std::size_t rows() const { return rows_.size(); }

 private:
  // Contexts: attention is nearly linear in them (exactly, in the roofline tier, but for one bend).
  static constexpr std::int64_t kContextPlaces = 44 * ContextGrid::per_octave;

  struct Batch {
    std::int64_t sequences = 0;
    std::uint32_t first_cell = 0;  // in cell_index_: `cells_of_a_batch` from there on
    // A key of overhang, on its own and beside prompts where one kernel has both.
    Overhang alone, joined;
  };

  std::int64_t cells_of_a_batch() const {
    return (windowed_ ? 2 : 1) * (joined_ ? 2 : 1) * kContextPlaces;
  }
  std::int32_t add_cell(std::int32_t batch, std::int64_t place, Kernel kernel);
  Cell cell_between(std::int64_t sequences, double low, double high, Kernel kernel);
  Overhang overhang_of(std::int64_t sequences, bool joined);
  DeviceTime time_of(const BatchShape& decodes, Kernel kernel, std::vector<KernelRow>* rows) const;

  const StepContext* context_ = nullptr;
  std::int64_t queries_ = 1;
  bool full_ = true, windowed_ = false, joined_ = false, uneven_ = false;
  double launches_ = 0;
  std::vector<Batch> batches_;
  std::vector<std::int32_t> cell_index_;  // -1: not yet
  std::vector<Cell> cells_;
  std::vector<std::int32_t> batch_order_, cell_order_;  // of a report
  std::vector<KernelRow> rows_;
};

}  // namespace engine

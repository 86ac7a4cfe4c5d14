// Step times of one evaluation in nanoseconds each: tables over token counts and total context,
// filled from the kernel model where the simulation looks, with the breakdown kept in the same cells.
//
// A decode step of b sequences that attend to C tokens takes, on the device, A_b plus attention that
// is linear in C between knots; the host turns device time D into max(D + added, least). So the time
// of a long stretch of decode steps is a sum in closed form, and what each kernel took follows from
// the number of steps and the sum of C in each cell.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/step/step_time.h"

namespace engine {

// Decode steps of one batch between two knots: step time as a function of what is attended to. Times
// are plain seconds; contexts are whole numbers held as doubles.
struct DecodeLine {
  double fixed = 0;         // device time at no context, on this line
  double slope = 0;         // a token attended to by layers without a window
  double window_slope = 0;  // a token attended to by layers with one
  double context_end = 0;   // the line holds below these
  double window_end = 0;
  double added = 0;
  double least = 0;
  std::int32_t batch = 0;  // cells its steps are counted in
  std::int32_t cell = -1;
  std::int32_t window_cell = -1;

  double device(double context, double window) const {
    return fixed + slope * context + window_slope * window;
  }
  double step(double context, double window) const {
    const double busy = device(context, window) + added;
    return busy > least ? busy : least;
  }
};

class StepTable {
 public:
  // Forgets everything but the memory; the context outlives the use.
  void reset(const StepContext& context);

  // The line for steps of `sequences` decodes that attend to `context` tokens in all, and to `window`
  // of them in layers with a sliding window.
  DecodeLine decode_line(std::int64_t sequences, double context, double window);
  // Counts `steps` steps on a line: the sums over them of context, window and time.
  void count_decode(const DecodeLine& line, double steps, double context_sum, double window_sum,
                    double seconds);

  // Time of a step with prompt chunks in it, and counts it. The decodes of the batch, if any, are as
  // in a decode line.
  double run_mixed(const BatchShape& batch);

  // Device time a token of a long prompt takes, attention left out: a scale for estimates.
  double prompt_token_seconds();

  // Rows of everything counted, host and gaps included, by phase. Once, at the end.
  void report(std::vector<KernelRow>& rows);
  double steps(Phase phase) const { return steps_[std::size_t(phase)]; }

 private:
  static constexpr std::size_t kPhases = enum_names(Phase{}).size();

  // Kernels that depend on a count of tokens only, at one grid point.
  struct Node {
    double time = 0;
    double launches = 0;
    std::uint32_t first_row = 0, last_row = 0;  // in rows_
    std::array<double, kPhases> weight{};
  };
  // Between two grid points.
  struct Blend {
    std::int32_t low, high;
    double share;  // of high
  };
  enum class Part : std::uint8_t { body, head, absorb };
  struct Grid {
    std::vector<std::int32_t> node;  // by grid point; -1: not yet
  };

  struct DecodeBatch {
    double fixed = 0;  // device time without attention
    double launches = 0;
    double added = 0, least = 0, gap = 0;
    Blend body{}, head{}, absorb{};
    double steps = 0;
    std::uint32_t first_cell = 0, first_window_cell = 0;  // in cell_index_
  };
  // Attention of one batch between two knots.
  struct Cell {
    double low = 0, high = 0;                 // knots
    double time_low = 0, time_high = 0;       // seconds there
    std::uint32_t row_low = 0, row_high = 0;  // in rows_
    std::array<double, kPhases> steps{};
    std::array<double, kPhases> sum{};  // of the context over those steps
  };

  Blend blend(Part part, std::int64_t count);
  std::int32_t node_at(Part part, std::int64_t point);
  double time_of(const Blend& blend) const;
  double launches_of(const Blend& blend) const;
  void weigh(const Blend& blend, Phase phase, double weight);
  std::int32_t batch_of(std::int64_t sequences);
  std::int32_t cell_at(std::int32_t batch, std::int64_t sequences, double context, bool window);
  double attention_at(std::int64_t sequences, double context, bool window,
                      std::vector<KernelRow>* rows, double* launches);
  std::int32_t fresh_prompt(std::int64_t tokens);
  bool joins_decodes(const BatchShape& batch) const;
  void run_prefill_attention(const BatchShape& batch, Phase phase, double& time, double& launches);

  const StepContext* context_ = nullptr;
  double attention_launches_ = 0;  // of the decodes of one step
  bool latent_ = false, windowed_ = false, full_ = true;
  std::array<Grid, 3> grids_;
  std::vector<Node> nodes_;
  std::vector<KernelRow> rows_;
  std::vector<std::int32_t> batch_index_;  // by sequences; -1: not yet
  std::vector<DecodeBatch> batches_;
  std::vector<std::int32_t> cell_index_;
  std::vector<Cell> cells_;
  std::vector<std::int32_t> fresh_;      // attention of one prompt from its start on, by tokens
  std::vector<KernelRow> prefill_rows_;  // of prompt attention, summed
  std::vector<KernelRow> scratch_rows_;
  OpList scratch_ops_, scratch_part_;
  std::array<double, kPhases> seconds_{};
  std::array<double, kPhases> steps_{};
};

}  // namespace engine

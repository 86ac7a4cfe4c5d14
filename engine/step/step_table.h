// Step times in nanoseconds each: tables over token counts and total context, filled from the kernel
// model where a simulation looks, with the breakdown counted in the same cells.
//
// A decode step of b sequences that attend to C tokens takes, on the device, A_b plus attention that
// is linear in C between knots; the host turns device time D into max(D + added, least). So the time
// of a long stretch of decode steps is a sum in closed form, and what each kernel took follows from
// the number of steps and the sum of C in each cell. Where the longest context outlasts the mean by o
// keys, it adds T_b o; all contexts of a stretch grow alike, so that is a constant of it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/step/octave_grid.h"
#include "engine/step/step_inputs.h"
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
  double overhang = 0;     // keys of the longest context beyond the mean: its time is in `fixed`
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

// How much longer steps take than their kernels say, by phase.
using StepScale = std::array<double, enum_names(Phase{}).size()>;
constexpr StepScale kAsPredicted = {1, 1, 1};

class StepTable {
 public:
  // Nothing is counted. Times stay where what they follow from is the same as before, as it is for
  // points of a sweep that differ in load or policy; reports do not depend on it. The context outlives
  // the use. A scale other than `kAsPredicted` is for asking what if: reports do not know it.
  void reset(const StepContext& context, const StepScale& scale = kAsPredicted);

  // What a line is for: `sequences` decodes that attend to `context` tokens in all, to `window` of
  // them in layers with a sliding window, and to `longest` in the longest sequence.
  struct Decodes {
    std::int64_t sequences = 1;
    double context = 0;
    double window = 0;
    double longest = 0;  // not looked at where `uneven()` is false
  };
  DecodeLine decode_line(const Decodes& decodes);
  // Unequal contexts take longer than equal ones.
  bool uneven() const { return uneven_; }
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
  // What everything counted would save if one part were free, the host's included: after the report.
  const Savings& saved() const { return saved_; }

 private:
  // Contexts: attention is nearly linear in them (exactly, in the roofline tier, but for one bend).
  using ContextGrid = OctaveGrid<2>;
  static constexpr std::int64_t kContextPlaces = 44 * ContextGrid::per_octave;

  static constexpr std::size_t kPhases = enum_names(Phase{}).size();
  using ByPhase = std::array<double, kPhases>;

  // Kernels that depend on one count of tokens: all but those that follow; logits and sampling;
  // products around latent attention; the exchange of tokens with their experts, in steps with prompts
  // and in others; attention of one prompt read from its start on.
  enum class Part : std::uint8_t { body, head, absorb, exchange, decode_exchange, prompt };
  static constexpr std::size_t kParts = 6;

  // They are timed at grid points ...
  struct Node {
    double time = 0;
    double launches = 0;
    Savings saved;
    std::uint32_t first_row = 0, last_row = 0;  // in rows_
    ByPhase weight{};                           // while reporting: steps it stands for
  };
  // ... and lie on a line between two of them.
  struct Count {
    double time = 0;
    double launches = 0;
    Savings saved;
    std::int32_t low = 0, high = 0;  // nodes
    double share = 0;                // of high
    ByPhase steps{};
  };
  struct Counts {
    std::vector<std::int32_t> node;   // by grid point; -1: not yet
    std::vector<std::int32_t> index;  // of met, by count; -1: not yet
    std::vector<Count> met;
  };

  // What the longest context takes beyond the mean.
  struct Overhang {
    double key_time = 0;
    Savings key_saved;
    std::uint32_t row = 0;  // in rows_, of one key
    ByPhase keys{};         // summed over steps
  };
  struct DecodeBatch {
    double fixed = 0;  // device time without attention
    Savings fixed_saved;
    double launches = 0;
    double added = 0, least = 0, gap = 0;
    std::int64_t rows = 0;  // tokens its kernels work on, padding included
    double steps = 0;
    // A key of overhang, on its own and beside prompts where one kernel has both.
    Overhang alone, joined;
    std::uint32_t first_cell = 0;  // in cell_index_: `cells_of_a_batch` from there on
    double device_sum = 0;         // while reporting: of its decode steps
    Savings saved_sum;
  };
  // Which attention of decodes: of layers with a window or without, on its own or in the kernel that
  // reads the step's prompts.
  struct DecodeKernel {
    bool window = false;
    bool joined = false;
  };
  // Attention of one batch between two knots.
  struct Cell {
    double low = 0, high = 0;                 // knots
    double time_low = 0, slope = 0;           // seconds at the lower one, and a token
    Savings saved_low, saved_slope;           // of these
    std::int32_t batch = 0;                   // in batches_
    std::uint32_t row_low = 0, row_high = 0;  // in rows_
    ByPhase steps{};
    ByPhase sum{};  // of the context over those steps
  };

  Count& count_at(Part part, std::int64_t count) {
    Counts& counts = counts_[std::size_t(part)];
    const std::size_t place = std::size_t(count);
    if (place >= counts.index.size() || counts.index[place] < 0) add_count(part, count);
    return counts.met[std::size_t(counts.index[place])];
  }
  std::int32_t batch_of(std::int64_t sequences) {
    const std::size_t place = std::size_t(sequences);
    if (place >= batch_index_.size() || batch_index_[place] < 0) add_batch(sequences);
    return batch_index_[place];
  }
  std::int32_t cell_at(std::int32_t batch, std::int64_t sequences, double context,
                       DecodeKernel kernel);
  std::int64_t cells_of_a_batch() const {
    return (windowed_ ? 2 : 1) * (joined_ ? 2 : 1) * kContextPlaces;
  }
  // The part of a batch that an op belongs to, in the table of `wanted`.
  static Part part_of(Grows grows, Part wanted);
  // Time, launches and savings of the kernels of one step.
  struct Kernels {
    double time = 0;
    double launches = 0;
    Savings saved;
  };
  void run_prompts(const BatchShape& batch, Phase phase, Kernels& kernels);

  // step_table_fill.cc: what is not there yet, out of the kernel model
  void forget();
  void add_count(Part part, std::int64_t count);
  std::int32_t node_at(Part part, std::int64_t point);
  void add_batch(std::int64_t sequences);
  Overhang overhang_of(std::int64_t sequences, bool joined);
  Cell cell_between(std::int64_t sequences, double low, double high, DecodeKernel kernel);
  DeviceTime attention_of(const BatchShape& decodes, DecodeKernel kernel,
                          std::vector<KernelRow>* rows);
  DeviceTime attention_at(std::int64_t sequences, double context, DecodeKernel kernel);

  // step_table_report.cc
  void weigh_nodes();
  void save_decodes();
  void order_for_report();

  const StepContext* context_ = nullptr;
  std::optional<StepInputs> inputs_;  // what the times below follow from
  double attention_launches_ = 0;     // of the decodes of one step
  bool latent_ = false, exchanges_ = false, windowed_ = false, full_ = true, joined_ = false,
       uneven_ = false;
  std::array<Counts, kParts> counts_;
  std::vector<Node> nodes_;
  std::vector<KernelRow> rows_;
  std::vector<std::int32_t> batch_index_;  // by sequences; -1: not yet
  std::vector<DecodeBatch> batches_;
  std::vector<std::int32_t> cell_index_;
  std::vector<Cell> cells_;
  Breakdown prompt_rows_;  // of prompt attention that is in no table, summed
  std::vector<std::int32_t> node_order_, cell_order_;  // of the report
  std::vector<KernelRow> scratch_rows_;
  OpList scratch_ops_, scratch_part_;
  StepScale scale_ = kAsPredicted;
  ByPhase seconds_{};
  ByPhase steps_{};
  // Of steps with prompts in them; those of decodes follow from their batches.
  ByPhase gaps_{}, launches_{};
  Savings saved_;
};

}  // namespace engine

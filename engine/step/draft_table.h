// What drafting adds to the decode steps of a simulation: as lines beside those of the main model, counted where steps
// use them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/step/breakdown.h"
#include "engine/step/draft_step.h"
#include "engine/step/kernel_sums.h"

namespace engine {

class StepTable;
struct DecodeLine;
struct Decodes;

class DraftTable {
 public:
  DraftTable();
  ~DraftTable();
  DraftTable(DraftTable&&) noexcept;
  DraftTable& operator=(DraftTable&&) noexcept;

  // Nothing is counted. The draft outlives the use; `scale` is how much longer its steps take than their kernels say.
  void reset(const DraftStep& draft, double scale);

  // Adds the proposals for a decode step to the main model's line; it holds no further than the draft's own.
  void extend(const Decodes& decodes, DecodeLine& line);
  // Counts steps on an extended line: the sums over them of context and window. Returns their seconds.
  double count(const DecodeLine& line, double steps, double context_sum, double window_sum);
  // The proposals for the decodes of one step, and the prompts that it reads: counted. Returns their seconds.
  double run(const BatchShape& batch);
  // Prompts that it reads by themselves: counted. Returns their seconds.
  double read(const BatchShape& prompts);

  // Adds rows of everything counted, and what it would save.
  void report(Breakdown& rows, Savings& saved);
  // Seconds of all proposals counted, and of all prompts that the draft read.
  double seconds() const { return seconds_; }
  double reading() const { return reading_; }

 private:
  // Adds a round of the draft's steps to a line.
  void extend_by(std::size_t round, const Decodes& decodes, DecodeLine& line);
  // Steps of all rounds but the first, counted where the mean of the main model's context is. Returns their seconds.
  double count_later_rounds(const DecodeLine& line, double steps, double context_sum,
                            double window_sum);
  // What does not depend on context in proposing for so many sequences: products and host.
  struct Rest {
    double seconds = 0;
    StepTime once;
    std::vector<KernelRow> rows;
    double steps = 0;
    bool known = false;
  };
  Rest& rest_of(std::int64_t sequences);
  double run_decodes(const Decodes& decodes);

  const DraftStep* draft_ = nullptr;
  double scale_ = 1;
  std::vector<std::unique_ptr<StepTable>>
      models_;               // by round, where there is a model; one at least
  std::vector<Rest> rests_;  // by sequences
  double seconds_ = 0, reading_ = 0;
};

}  // namespace engine

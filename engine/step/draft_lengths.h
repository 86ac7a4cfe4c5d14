// Decode steps that propose more or fewer tokens: for each as many as make most tokens a second.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/step/breakdown.h"
#include "engine/step/draft_step.h"
#include "engine/step/kernel_sums.h"
#include "engine/step/pace.h"

namespace engine {

class StepTable;
struct DecodeLine;
struct Decodes;

// One of the numbers of tokens that a step may propose.
struct DraftLength {
  Pace pace;
  double expected = 1;  // tokens that a step makes of a sequence, on average
  DraftStep draft;
};

class DraftLengths {
 public:
  DraftLengths();
  ~DraftLengths();
  DraftLengths(DraftLengths&&) noexcept;
  DraftLengths& operator=(DraftLengths&&) noexcept;

  // Nothing is counted. Everything referred to outlives the use.
  void reset(const StepContext& context, const ByPhase& scale,
             std::span<const DraftLength> lengths);
  bool any() const { return !lengths_.empty(); }

  // The length that is best for so many decodes of about such a context. It follows from these two alone, so steps of a
  // stretch and single steps choose alike: contexts that share a sixteenth of an octave share the choice.
  int pick(const Decodes& decodes);
  const DraftLength& at(int length) const { return lengths_[std::size_t(length)]; }
  // The line of that length, which holds no further than the choice.
  void line(int length, const Decodes& decodes, DecodeLine& line);
  StepTable& table(int length) { return *tables_[std::size_t(length)]; }

  // Adds rows of everything counted, and its sums.
  void report(Breakdown& rows, StepTable& all);

 private:
  int choice(std::int64_t sequences, std::int64_t place);

  std::span<const DraftLength> lengths_;
  std::vector<std::unique_ptr<StepTable>> tables_;
  std::int64_t window_ = 0;
  std::vector<std::vector<std::int8_t>>
      choices_;  // by sequences and place of the context; -1: not yet
};

}  // namespace engine

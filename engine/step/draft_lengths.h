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
  double reading = 0;  // seconds that the draft reads prompts for each token made, on average
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
  // The same for a step that also reads prompts, which is long enough for its tokens to be worth their arithmetic: the length,
  // up to that picked, whose proposals save more time of steps without prompts than they take in this one.
  int pick_beside_prompts(const Decodes& decodes, int picked);
  const DraftLength& at(int length) const { return lengths_[std::size_t(length)]; }
  // The line of that length, which holds no further than the choice.
  void line(int length, const Decodes& decodes, DecodeLine& line);
  StepTable& table(int length) { return *tables_[std::size_t(length)]; }
  // Prompts that the draft reads by itself: counted. Returns their seconds.
  double read(const BatchShape& prompts);

  // Adds rows of everything counted, and its sums.
  void report(Breakdown& rows, StepTable& all);

 private:
  // Lengths that were chosen, by sequences and place of the context; -1: not yet.
  using Choices = std::vector<std::vector<std::int8_t>>;
  static std::int8_t& chosen(Choices& choices, std::int64_t sequences, std::int64_t place);
  int choice(std::int64_t sequences, std::int64_t place);
  int beside_prompts(std::int64_t sequences, std::int64_t place);
  // Decodes in the middle of the contexts that share a place.
  Decodes middle(std::int64_t sequences, std::int64_t place) const;

  std::span<const DraftLength> lengths_;
  std::vector<std::unique_ptr<StepTable>> tables_;
  std::int64_t window_ = 0;
  Choices alone_, beside_;  // without prompts, and with
};

}  // namespace engine

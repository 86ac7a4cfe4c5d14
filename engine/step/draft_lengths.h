// Decode steps that propose more or fewer tokens: for each as many as make most tokens a second.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "engine/step/breakdown.h"
#include "engine/step/clock_levels.h"
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
  // The draft reads prompts when it first proposes: whether that pays is asked.
  bool reads_late = false;
  // Limit on the time of a step, in seconds, where steps keep one by their clock; infinite: as for all lengths.
  double limit = std::numeric_limits<double>::infinity();
};

class DraftLengths {
 public:
  DraftLengths();
  ~DraftLengths();
  DraftLengths(DraftLengths&&) noexcept;
  DraftLengths& operator=(DraftLengths&&) noexcept;

  // Nothing is counted. Everything referred to outlives the use.
  void reset(const StepContext& context, const ByPhase& scale, const ClockChoice& clock,
             std::span<const DraftLength> lengths);
  bool any() const { return !lengths_.empty(); }

  // The best length for so many decodes with about such a context. It follows from these two alone, and contexts within a sixteenth of an
  // octave share the choice, so that a stretch and single steps choose alike. Other batches of a pipeline, and replicas that share
  // experts, are taken to be like this one. Clocks are chosen afterwards.
  int pick(const Decodes& decodes);
  // The same for a step that also reads prompts, which is long enough for its tokens to be worth their arithmetic: the length,
  // up to that picked, whose proposals save more time of steps without prompts than they take in this one.
  int pick_beside_prompts(const Decodes& decodes, int picked);
  const DraftLength& at(int length) const { return lengths_[std::size_t(length)]; }
  // What proposals save in a step of these decodes, in picoseconds: of a step that makes them, against making its tokens
  // without; and of one that does not, if its tokens were made with them. Whole numbers add up alike in any order.
  struct Saving {
    std::int64_t proposing = 0, otherwise = 0;
  };
  const Saving& saving(const Decodes& decodes);
  const Saving& saving_beside_prompts(const Decodes& decodes);
  // The line of that length, which holds no further than the choice, or than what it saves where that is asked for.
  void line(int length, const Decodes& decodes, DecodeLine& line);
  StepTable& table(int length) { return *tables_[std::size_t(length)]; }
  // Prompts that the draft reads by itself: counted. Returns their seconds.
  double read(const BatchShape& prompts);

  ClockLevels::Sums clock_sums() const;
  // Adds rows of everything counted, and its sums.
  void report(Breakdown& rows, StepTable& all);

 private:
  struct Choice {
    std::int8_t length = -1;  // not yet
    Saving saving;
  };
  // By sequences and place of the context.
  using Choices = std::vector<std::vector<Choice>>;
  static Choice& chosen(std::vector<Choices>& choices, const Decodes& decodes, std::int64_t place);
  const Choice& alone(const Decodes& decodes, std::int64_t place);
  const Choice& beside_prompts(const Decodes& decodes, std::int64_t place);
  // From a step of that length to the next one of its batch; and what proposing holds up in it, in all batches together.
  double round_seconds(int length, const Decodes& decodes);
  double proposing_seconds(int length, const Decodes& decodes);
  // As many decodes as these, in the middle of the contexts that share a place.
  Decodes middle(const Decodes& decodes, std::int64_t place) const;

  std::span<const DraftLength> lengths_;
  std::vector<std::unique_ptr<StepTable>> tables_;
  std::int64_t window_ = 0;
  double stages_ = 1;
  std::vector<Choices> alone_, beside_;  // without prompts, and with; by batches in the pipeline
};

}  // namespace engine

// Decodes of a lane that differ in how many tokens a step makes of them, column by column in the order of admission: every
// step looks at all of them, several at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/serving/sequences/sequence.h"
#include "engine/serving/sequences/sequence_paces.h"

namespace engine {

class OwnPaced {
 public:
  void clear() { keep(0); }
  // A sequence begins to decode that was admitted after `before` (-1: before all others). Its draws follow from `seed`.
  void insert(std::int32_t slot, std::int32_t before, const Sequence& sequence, std::uint64_t seed);
  void erase(std::int32_t slot);
  // The `newest` newest sequences make none of the tokens that the lane makes in this step.
  void leave_out(std::int64_t newest, std::int64_t tokens) {
    for (auto base = bases_.end() - newest; base != bases_.end(); ++base) *base -= tokens;
  }

  std::span<const std::int32_t> slots() const { return slots_; }
  std::span<std::int64_t> bases() { return bases_; }
  // A step of the first sequences. The lane counts `tokens` for each, which is as many as a step can make at most.
  struct Step {
    std::size_t decodes = 0;
    std::int64_t lane_tokens = 0;  // before it
    std::int64_t tokens = 1;
  };
  // By how many tokens each of them is to fall behind the lane.
  std::span<const std::int64_t> behind(const Step& step, const SequencePaces& paces,
                                       const Sequences& sequences);
  // Blocks that they take fewer for it, where a context takes `ahead` more than its tokens and the tokens of the lane.
  std::int64_t fewer_blocks(std::int64_t ahead, std::int64_t block_size) const;

 private:
  std::size_t place_after(std::int32_t slot) const;
  void keep(std::size_t count);
  void draw(std::size_t decodes);

  std::vector<std::int32_t> slots_;
  std::vector<std::uint64_t> seeds_;
  std::vector<std::int64_t> bases_;   // contexts, less the tokens of the lane
  std::vector<std::int64_t> unmade_;  // what a context is more than the tokens made
  std::vector<std::int64_t> least_;   // blocks it has, whatever its context
  // of the present step
  std::vector<std::int64_t> behind_;
  std::vector<std::uint64_t> made_;  // before it
  std::vector<double> luck_;
};

}  // namespace engine
